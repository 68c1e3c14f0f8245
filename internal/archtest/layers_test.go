package archtest

// layers are the packages from the bottom to the top. A name ending in /... is a package with all below it, "." the
// root package. A package imports only from layers below its own. A new package needs a place here: the lowest layer
// that is above everything that it imports.
var layers = [][]string{
	{"pipeline", "pipeline/transcript/rawjson"},
	{"pipeline/transcript/jsonstream", "pipeline/transcript/layout", "pipeline/transcript/media"},
	{"pipeline/transcript/wire/..."},
	{"pipeline/transcript"},
	{"pipeline/transcript/valid"},
	{"pipeline/transcript/request"},
	{
		"pipeline/transcript/convert", "internal/memory/search", "internal/redact", "internal/version", "migrations",
	},
	{"."},
	{"internal/contract"},
	{"internal/config", "internal/llm", "internal/store/db"},
	{"internal/store/access", "internal/store/breakers", "internal/store/schema", "internal/store/seals"},
	{"internal/store/conversations"},
	{
		"internal/store/artifacts", "internal/store/livestate", "internal/store/replies", "internal/store/searchindex",
		"internal/store/timeline",
	},
	{"internal/store/runs"},
	{"internal/store/markers", "internal/store/modelcalls", "internal/store/outbox", "internal/store/replays"},
	{"internal/store/contexts", "internal/store/retention", "internal/store/segments"},
	{"internal/store/evidence", "internal/store/triggers"},
	{"internal/store/changes", "internal/store/exports"},
	{"internal/store", "internal/api/wire"},
	{
		"internal/conversation", "internal/devstack", "internal/eval", "internal/testkit/vendorserver",
		"internal/fair", "internal/runreport", "internal/telemetry", "internal/temporalclient",
		"internal/testkit/corpus",
	},
	{"internal/launch"},
	{"internal/audit", "internal/testkit/stacktest", "internal/memory"},
	{"internal/service"},
	{"internal/mcp"},
	{"internal/api"},
	{"internal/web"},
	{"activities"},
	{"workflows"},
	{"internal/cli/fail", "internal/cli/historycheck", "internal/cli/term", "internal/worker"},
	{"internal/cli/connect", "internal/cli/draw"},
	{"internal/testkit/scenario"},
	{"internal/cli/...", "internal/worker/process", "internal/testkit/apitest", "internal/testkit/exampletest"},
	{
		"starter/...", "worker/...", "bench/...", "examples/...", "internal/devstack/cmd/...", "internal/faults",
		"internal/testkit/compat", "internal/testkit/fieldcases",
	},
	{"internal/archtest"},
}

// only says which packages of the module a package may import, where being below is not enough.
var only = map[string][]string{
	// The door for programs of other modules: what it imports, they import.
	".":                 {"pipeline"},
	"internal/contract": {".", "pipeline"},
	// A workflow decides and never computes; what it has to know it asks activities for, by their names.
	"workflows": {".", "internal/contract", "pipeline"},
	// Plain adapters, so that each can be read and replaced alone.
	"internal/llm":    {"internal/contract", "pipeline", "pipeline/transcript", "pipeline/transcript/rawjson"},
	"internal/config": {"internal/contract", "pipeline"},
	// A main is a few lines over a package that tests can reach.
	"starter": {"internal/cli"},
	"worker":  {"internal/worker/process"},
	// An example imports what a program of another module can import.
	"examples/pipeline": {"pipeline", "pipeline/transcript", "pipeline/transcript/convert"},
}

// above are the packages that may import workflows and activities: what the two mains are made of, and test kits. All
// other packages start workflows by their names in precis and contract.
var above = []string{"internal/cli", "internal/worker", "internal/testkit"}

// throughService are the packages that work through internal/service, and exempt those among them that open what the
// service is made of. Nothing else of the command line imports what is behind the service, so that validation, defaults
// and budgets are those of the HTTP API.
var (
	throughService = []string{"internal/cli/..."}
	exempt         = []string{"internal/cli/connect"}
	behindService  = []string{"internal/audit", "internal/conversation", "internal/launch", "internal/store/..."}
)

// outside says which modules beside the standard library a package may import, for packages that programs of other
// modules import as a library.
var outside = map[string][]string{
	".":                       {"go.temporal.io/api", "go.temporal.io/sdk"},
	"pipeline":                {"github.com/tiktoken-go/tokenizer"},
	"pipeline/transcript/...": {},
}

// pure are the packages that do no I/O, ask no clock and use no randomness, so that a run can be replayed from its
// record.
var pure = []string{"pipeline/..."}

// impure are the parts of the standard library that pure packages may not import.
var impure = []string{
	"crypto/rand", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec",
	"os/signal", "plugin", "runtime/debug", "syscall", "testing", "testing/iotest",
}

// impureCalls are the parts of package time that ask the clock. Pure packages may use its durations.
var impureCalls = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
