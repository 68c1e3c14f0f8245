package wire

import (
	"time"

	"precis/pipeline"
)

// MemoryEntry is an entry of a conversation's memory.
type MemoryEntry struct {
	_ struct{} `doc:"An entry of a conversation's memory."`

	Name       string `json:"name"`
	Kind       string `json:"kind" enum:"segment,note,index"`
	CoversFrom int64  `json:"covers_from,omitempty" doc:"Number of the first message of a segment. A message that is larger than a segment is in several."`
	CoversTo   int64  `json:"covers_to,omitempty" doc:"Number of the last message of a segment."`
	Marker     string `json:"marker,omitempty" doc:"The marker of the compaction that the segment was made for."`
	Bytes      int64  `json:"bytes" doc:"Size of the entry's text. 0: not known yet."`
	SegmentFacts
	Created time.Time `json:"created,omitzero" doc:"When a note was last written, or a segment was first requested."`
}

// SegmentFacts are what INDEX.md says about a segment.
type SegmentFacts struct {
	Tokens    int       `json:"tokens,omitempty" doc:"Size of the segment's messages in tokens, estimated."`
	First     time.Time `json:"first,omitzero" doc:"When the first message of the segment arrived."`
	Last      time.Time `json:"last,omitzero" doc:"When the last message of the segment arrived."`
	Request   string    `json:"request,omitempty" doc:"The first request of the user in the segment, shortened."`
	Files     []string  `json:"files,omitempty" doc:"Files that tools read or changed in the segment, the most recent first."`
	MoreFiles int       `json:"more_files,omitempty" doc:"How many more files there are."`
}

// Segments is a page of a conversation's memory.
type Segments struct {
	_ struct{} `doc:"A page of a conversation's memory."`

	Segments []MemoryEntry `json:"segments" doc:"INDEX.md, then the segments in the order of the conversation, then the notes by name."`
	Folder   string        `json:"folder,omitempty" doc:"The folder below memory.folder that holds the same entries as files. Left out when memory.folder is not set."`
	Next     string        `json:"next" doc:"Cursor of the next page. Empty on the last page."`
}

// Segment is an entry of a conversation's memory with its text.
type Segment struct {
	_ struct{} `doc:"An entry of a conversation's memory with its text."`

	MemoryEntry
	Text string `json:"text"`
}

// NewNoteInput is a note to keep.
type NewNoteInput struct {
	Name    string `json:"name,omitempty" limit:"note_name" doc:"Letters, digits, dot, _ and -, beginning with a letter or digit. Left out: the next free name, such as note_0001.md."`
	Text    string `json:"text" limit:"note" doc:"At most 256 KB."`
	Replace bool   `json:"replace,omitempty" doc:"Replace an existing note of that name. Otherwise another text under an existing name is a conflict."`
}

// MemoryFound is a page of search results.
type MemoryFound struct {
	_ struct{} `doc:"A page of search results."`

	Hits  []MemoryHit `json:"hits"`
	Match string      `json:"match" enum:"words,substring" doc:"words: whole words matched, best first. substring: no whole word matched, so these are matches inside of words, newest first."`
	Next  string      `json:"next" doc:"Cursor of the next page. Empty on the last page."`
}

// MemoryHit is a message or a note that a search found.
type MemoryHit struct {
	_ struct{} `doc:"A message or a note that a search found."`

	Seq     int64         `json:"seq,omitempty" doc:"Number of the message. Left out for a note, as role and kind."`
	Role    pipeline.Role `json:"role,omitempty"`
	Kind    pipeline.Kind `json:"kind,omitempty"`
	Offset  int           `json:"offset,omitempty" doc:"Byte of the message's text at which the match begins. seq and offset are a place from which the transcript can be read."`
	Covered bool          `json:"covered" doc:"In the context a summary stands for the message."`
	Segment string        `json:"segment,omitempty" doc:"The entry of the memory that holds the match: a segment, or the note itself. Left out for a message that no compaction has covered yet."`
	Note    bool          `json:"note,omitempty" doc:"The match is in a note."`
	Snippet string        `json:"snippet" doc:"The match with the text around it, on one line. Double asterisks mark the match."`
	Rank    float64       `json:"rank" doc:"How well it matches, comparable within one search. 0 for a match inside of a word."`
}
