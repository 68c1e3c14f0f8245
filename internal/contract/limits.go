package contract

import "precis/pipeline"

// Limit is the maximum of one kind of thing in a request of the HTTP API or of MCP. The fields of package wire and the
// parameters of package api name their limit in the tag limit. The body is checked against it before it is decoded.
type Limit struct {
	// Name as in the tag.
	Name string
	// Max is a number of bytes of UTF-8 for texts and raw JSON, and of entries for lists and maps.
	Max int
	// Unit of Max, as a reader of the documentation sees it.
	Unit string
	// About says what is limited.
	About string
}

// The limits that code outside of the API applies as well.
const (
	// MaxDepth bounds how deep the arrays and objects of a body nest.
	MaxDepth = 512
	// MaxErrors is how many fields at fault an answer lists. The others are counted.
	MaxErrors = 20
	// MaxErrorText bounds each text of an error in bytes. What it quotes of a request is cut.
	MaxErrorText = 1 << 10
	// MaxFocusBytes bounds the focus of a run.
	MaxFocusBytes = 4 << 10
	// MaxMetadataBytes bounds a conversation's metadata.
	MaxMetadataBytes = 16 << 10
	// MaxSettingsBytes bounds the settings of a conversation and of a tenant.
	MaxSettingsBytes = 64 << 10
	// MaxStateBytes bounds a value of the live state.
	MaxStateBytes = 256 << 10
	// MaxStateKeys is how many keys of the live state a conversation has.
	MaxStateKeys = 64
	// MaxMCPBody bounds a message of an MCP client: the largest note with every character escaped.
	MaxMCPBody = 2 << 20
)

const (
	unitBytes   = "bytes"
	unitEntries = "entries"
)

// Limits are all limits of requests, in the order of the documentation.
var Limits = []Limit{
	{"messages", 10_000, unitEntries, "messages of one request, and the entries of `meta`"},
	{"state_keys", MaxStateKeys, unitEntries, "keys of the live state, of one request and of a conversation"},
	{"state_items", 1_000, unitEntries, "items of a value of the live state"},
	{"state_item", 64 << 10, unitBytes, "an item of a value of the live state"},
	{"state_text", MaxStateBytes, unitBytes, "a value of the live state"},
	{"summarizers", pipeline.MaxSummarizers, unitEntries, "summarizers of a setting or a request"},
	{"summarizer_list", 4 << 10, unitBytes, "`summarizer`, a list of summarizers as a text"},
	{"focus", MaxFocusBytes, unitBytes, "`focus` of a compaction or a replay"},
	{"metadata", MaxMetadataBytes, unitBytes, "`metadata` of a conversation"},
	{"settings", MaxSettingsBytes, unitBytes, "`settings` of a conversation, a tenant or a request"},
	{"object_keys", 1_000, unitEntries, "keys of `metadata` and of `settings`"},
	{"system", 8 << 20, unitBytes, "a system prompt"},
	{"tools", 8 << 20, unitBytes, "tool definitions"},
	{"summary", 8 << 20, unitBytes, "the summary of a compaction that the agent did itself"},
	{"usage", 64 << 10, unitBytes, "a vendor's usage object"},
	{"vendor_error", 1 << 20, unitBytes, "the body of a vendor's error"},
	{"note", 256 << 10, unitBytes, "a note"},
	{"message_id", 512, unitBytes, "a client's own id of a message"},
	{"conversation_id", 160, unitBytes, "the id of a conversation"},
	{"run_id", 64, unitBytes, "the id of a run or a reply, and a key of the live state"},
	{"note_name", 128, unitBytes, "the name of a note or a segment"},
	{"word", 256, unitBytes, "the name of a format, vendor, model, prompt, summarizer or kind"},
	{"query", 1 << 10, unitBytes, "the query of a search"},
	{"cursor", 1 << 10, unitBytes, "a cursor of a list, and the id of an event"},
	{"include", 5, unitEntries, "texts of a run that one request includes"},
}

// LimitOf returns a limit by its name. It panics if there is none.
func LimitOf(name string) Limit {
	for _, l := range Limits {
		if l.Name == name {
			return l
		}
	}
	panic("contract: there is no limit " + name)
}
