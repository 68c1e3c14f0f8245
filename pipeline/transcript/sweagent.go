package transcript

import (
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

// sweAgent reads a file as a trajectory of SWE-agent or of mini-swe-agent, whose messages
// are those of the format openai. Detect never returns it; it is for files whose format cannot be detected.
type sweAgent struct{ openAIChat }

func (sweAgent) detect(rawjson.Outline) bool { return false }

func (f sweAgent) open(s *jsonstream.Reader, o Options) source {
	d := openAIChat{}.open(s, o).(*documents)
	d.wrapper = f.wrapper
	return d
}

// wrapper returns one of the two for every object: SWE-agent's list is called history.
func (sweAgent) wrapper(b []byte, outer rawjson.Value, arrayKey string) string {
	switch w := (openAIChat{}).wrapper(b, outer, arrayKey); w {
	case sourceSWE, sourceMiniSWE, sourceUnknown:
		return w
	}
	return sourceMiniSWE
}
