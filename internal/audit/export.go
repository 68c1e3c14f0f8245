package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/exports"
	"precis/internal/store/seals"
)

// An export is one file of JSON lines, docs/export.md describes it: a header, a line for each row, a trailer with
// counts and a hash over all that is before it.

// ExportVersion is that of the files which are written here. Others are refused.
const ExportVersion = 1

// ExportHeader is the first line of an export.
type ExportHeader struct {
	// Version is first, so that a file is recognized by its first bytes.
	Version      int    `json:"precis_export"`
	Conversation string `json:"conversation"`
	Format       string `json:"format"`
	// Messages and SealChain are the head of what is exported.
	Messages  int64      `json:"messages"`
	SealChain store.Hash `json:"head"`
	Exported  time.Time  `json:"exported"`
	Code      string     `json:"code"`
}

// exportLine is a line of a row. Content that is UTF-8 is in Text, any other in Base64.
type exportLine struct {
	Table  string          `json:"table"`
	Row    json.RawMessage `json:"row"`
	Text   *string         `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

// exportTrailer is the last line.
type exportTrailer struct {
	End bool `json:"end"`
	// Rows counts by table, SHA256 is of all bytes before this line.
	Rows   map[string]int `json:"rows"`
	SHA256 store.Hash     `json:"sha256"`
}

// Export writes a conversation with its runs and everything that proves them, and says how many rows of each table. It
// holds one row at a time. While a run is under way it is store.ErrRunActive.
func Export(ctx context.Context, s *store.Store, ref store.ConversationRef, code string,
	w io.Writer,
) (map[string]int, error) {
	out := &exportWriter{w: bufio.NewWriterSize(w, 1<<20), sum: sha256.New(), rows: map[string]int{}}
	err := s.Exports.Export(ctx, ref, func(c conversations.Conversation) error {
		if out.lines > 0 {
			return errors.New("the database went away in the middle of the export: start it again")
		}
		return out.line(ExportHeader{
			Version: ExportVersion, Conversation: c.Ref.ID, Format: c.Format, Messages: c.HeadSeq,
			SealChain: c.SealChain, Exported: time.Now().UTC(), Code: code,
		})
	}, func(r exports.Row) error {
		l := exportLine{Table: r.Table, Row: r.Row}
		switch {
		case r.Content == nil:
		case utf8.Valid(r.Content):
			text := string(r.Content)
			l.Text = &text
		default:
			l.Base64 = r.Content
		}
		out.rows[r.Table]++
		return out.line(l)
	})
	if out.failed != nil {
		// The store takes it for a connection of its own that broke, and has begun again.
		return nil, fmt.Errorf("write the export: %w", out.failed)
	}
	if err != nil {
		return nil, err
	}
	if err := out.line(exportTrailer{End: true, Rows: out.rows, SHA256: store.Hash(out.sum.Sum(nil))}); err != nil {
		return nil, err
	}
	return out.rows, out.w.Flush()
}

type exportWriter struct {
	w     *bufio.Writer
	sum   hash.Hash
	lines int
	rows  map[string]int
	// failed is what writing came to, nil: no error.
	failed error
}

func (o *exportWriter) line(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	o.lines++
	_, _ = o.sum.Write(b.Bytes())
	_, o.failed = o.w.Write(b.Bytes())
	return o.failed
}

// IsExport says whether a file that begins so is an export.
func IsExport(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte(`{"precis_export":`))
}

// ExportReader reads an export row by row. Every error but io.EOF names the line.
type ExportReader struct {
	Header ExportHeader

	r    *bufio.Reader
	sum  hash.Hash
	at   int
	rows map[string]int
	// table is the place of the last row's table.
	table int
}

// maxLine bounds a line: a message with the largest content there is, escaped.
const maxLine = 6*conversations.MaxMessageBytes + 1<<20

// ReadExport reads the header of an export.
func ReadExport(r io.Reader) (*ExportReader, error) {
	e := &ExportReader{r: bufio.NewReaderSize(r, 1<<20), sum: sha256.New(), rows: map[string]int{}}
	raw, err := e.next()
	if err != nil {
		return nil, e.fault("the file is empty")
	}
	if err := json.Unmarshal(raw, &e.Header); err != nil || e.Header.Version == 0 {
		return nil, e.fault("it is no export of precis")
	}
	if e.Header.Version != ExportVersion {
		return nil, e.fault("it is an export of version %d, and this build reads version %d", e.Header.Version,
			ExportVersion)
	}
	return e, nil
}

func (e *ExportReader) fault(format string, args ...any) error {
	return store.Invalidf("line %d: %s", max(e.at, 1), fmt.Sprintf(format, args...))
}

// next reads a line, and adds the one before it to the hash.
func (e *ExportReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			e.at++
			return nil, e.fault("it is longer than any line can be")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) == 0 {
			return nil, err
		}
		e.at++
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if bytes.HasPrefix(line, []byte(`{"end":`)) {
			return line, nil
		}
		_, _ = e.sum.Write(line)
		return line, nil
	}
}

// Next gives the next row, io.EOF after the last. A file that was cut off, or whose bytes are not those that were
// written, is store.ErrInvalid at the latest at its end.
func (e *ExportReader) Next() (exports.Row, error) {
	var none exports.Row
	raw, err := e.next()
	if errors.Is(err, io.EOF) {
		return none, e.fault("the file ends here, and its last line is missing: it was cut off")
	}
	if err != nil {
		return none, err
	}
	if bytes.HasPrefix(raw, []byte(`{"end":`)) {
		return none, e.end(raw)
	}
	var l exportLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return none, e.fault("it is no JSON object of a row: %s", err)
	}
	place := slices.Index(exports.Tables(), seals.TableName(l.Table))
	switch {
	case place < 0:
		return none, e.fault("there is no table %q in an export", l.Table)
	case place < e.table:
		return none, e.fault("a row of %s stands behind its place", l.Table)
	case l.Text != nil && l.Base64 != nil:
		return none, e.fault("it has its content twice")
	}
	e.table = place
	e.rows[l.Table]++
	row := exports.Row{Table: l.Table, Row: l.Row, Content: l.Base64}
	if l.Text != nil {
		row.Content = []byte(*l.Text)
	}
	return row, nil
}

func (e *ExportReader) end(raw []byte) error {
	var t exportTrailer
	if err := json.Unmarshal(raw, &t); err != nil || !t.End {
		return e.fault("the last line cannot be read")
	}
	if !maps.Equal(t.Rows, e.rows) {
		return e.fault("the file has other rows than it says: %v, and it says %v", e.rows, t.Rows)
	}
	if t.SHA256 != store.Hash(e.sum.Sum(nil)) {
		return e.fault("the file is damaged: its bytes have another hash than it says")
	}
	if rest, err := e.next(); len(rest) > 0 || !errors.Is(err, io.EOF) {
		return e.fault("there is more behind the last line")
	}
	return io.EOF
}

// CheckExport reads an export to its end and gives its header. What is damaged or cut off is store.ErrInvalid with the
// line.
func CheckExport(r io.Reader) (ExportHeader, error) {
	e, err := ReadExport(r)
	if err != nil {
		return ExportHeader{}, err
	}
	for {
		switch _, err := e.Next(); {
		case errors.Is(err, io.EOF):
			return e.Header, nil
		case err != nil:
			return e.Header, err
		}
	}
}

// Import writes an export into a store: all of it, verified, or nothing. open gives the file from its beginning, and is
// called more than once. Every fault names the line where the file is at fault.
func Import(ctx context.Context, s *store.Store, to exports.Target,
	open func() (io.Reader, error),
) (exports.Imported, error) {
	r, err := open()
	if err != nil {
		return exports.Imported{}, err
	}
	if _, err := CheckExport(r); err != nil {
		return exports.Imported{}, err
	}
	var e *ExportReader
	im, err := s.Exports.Import(ctx, to, func() (func() (exports.Row, error), error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		if e, err = ReadExport(r); err != nil {
			return nil, err
		}
		return e.Next, nil
	})
	if err != nil && errors.Is(err, store.ErrInvalid) && e != nil {
		err = fmt.Errorf("line %d: %w", e.at, err)
	}
	return im, err
}
