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

// An export is a file of JSON lines, described in docs/export.md: a header, a line for each row, and a trailer with
// counts and a hash of all bytes before it.

// ExportVersion is the version of the file format. Files of other versions are refused.
const ExportVersion = 1

// ExportHeader is the first line of an export.
type ExportHeader struct {
	// Version is first, so that a file is recognized by its first bytes.
	Version      int    `json:"precis_export"`
	Conversation string `json:"conversation"`
	Format       string `json:"format"`
	// Messages and SealChain are the head of the exported conversation.
	Messages  int64      `json:"messages"`
	SealChain store.Hash `json:"head"`
	Exported  time.Time  `json:"exported"`
	Code      string     `json:"code"`
}

// exportLine is the line of a row. Content that is UTF-8 is in Text, other content in Base64.
type exportLine struct {
	Table  string          `json:"table"`
	Row    json.RawMessage `json:"row"`
	Text   *string         `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

// exportTrailer is the last line.
type exportTrailer struct {
	End bool `json:"end"`
	// Rows has the number of rows of each table, SHA256 the hash of all bytes before this line.
	Rows   map[string]int `json:"rows"`
	SHA256 store.Hash     `json:"sha256"`
}

// Export writes a conversation with its runs and their evidence, and returns the number of rows of each table. It holds
// one row in memory at a time. The error is store.ErrRunActive while a run is active.
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
		// The store takes a failed write for a broken database connection and retries, so its error is not the cause.
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
	// failed is the error of the last write.
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

// IsExport reports whether a file that begins with head is an export.
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
	// table is the index of the last row's table in exports.Tables.
	table int
}

// maxLine bounds the length of a line: a message of the largest size, escaped.
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

// next returns the next line and adds it to the hash, unless it is the trailer.
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

// Next returns the next row, and io.EOF after the last one. The error is store.ErrInvalid if the file was truncated or
// changed; a change may be found only at the end of the file.
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
		return none, e.fault("it is not the JSON object of a row: %s", err)
	}
	place := slices.Index(exports.Tables(), seals.TableName(l.Table))
	switch {
	case place < 0:
		return none, e.fault("there is no table %q in an export", l.Table)
	case place < e.table:
		return none, e.fault("a row of %s comes after its place", l.Table)
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

// CheckExport reads an export to its end and returns its header. The error is store.ErrInvalid, with the line, if the
// file is damaged or truncated.
func CheckExport(r io.Reader) (ExportHeader, error) {
	e, err := ReadExport(r)
	if err != nil {
		return ExportHeader{}, err
	}
	for {
		switch row, err := e.Next(); {
		case errors.Is(err, io.EOF):
			return e.Header, nil
		case err != nil:
			return e.Header, err
		case row.Table == "conversations":
			if err := e.Header.describes(row); err != nil {
				return e.Header, err
			}
		}
	}
}

// describes returns an error unless the header says of the conversation what its row says.
func (h ExportHeader) describes(row exports.Row) error {
	var c struct {
		ID        string `json:"id"`
		Format    string `json:"format"`
		HeadSeq   int64  `json:"head_seq"`
		SealChain string `json:"seal_chain"`
	}
	if err := json.Unmarshal(row.Row, &c); err != nil {
		return store.Invalidf("line 2: the row of the conversation cannot be read: %s", err)
	}
	said := [...]any{h.Conversation, h.Format, h.Messages, `\x` + h.SealChain.String()}
	for i, value := range [...]any{c.ID, c.Format, c.HeadSeq, c.SealChain} {
		if said[i] != value {
			return store.Invalidf("line 1: the header says %v, and the conversation's row %v", said[i], value)
		}
	}
	return nil
}

// Import stores an export, verified and as a whole, or nothing of it. open returns the file from its beginning and is
// called more than once. An error about the file names the line.
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
