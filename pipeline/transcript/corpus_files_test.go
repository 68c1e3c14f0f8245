package transcript_test

import (
	"testing"

	"precis/internal/testkit/corpus"
)

// eachCorpusFile runs a test over every file of a section of the corpus, with its line in the index. The
// section must have the files of its index and no others.
func eachCorpusFile[F any](t *testing.T, section string, index func(*testing.T, string) map[string]F,
	test func(t *testing.T, f corpus.File, want F),
) {
	t.Helper()
	files := corpus.Files(t, section)
	if len(files) == 0 {
		return
	}
	all := index(t, section)
	if len(files) != len(all) {
		t.Errorf("%s has %d files, its index %d", section, len(files), len(all))
	}
	for _, f := range files {
		want, ok := all[f.Name]
		if !ok {
			t.Errorf("%s is not in the index of %s", f.Name, section)
		}
		t.Run(section+"/"+f.Name, func(t *testing.T) {
			t.Parallel()
			test(t, f, want)
		})
	}
}
