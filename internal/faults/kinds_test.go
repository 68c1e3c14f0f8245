package faults

// rule makes a whole kind of fault impossible; where names the packages that hold it.
type rule struct {
	says  string
	where []string
}

// kinds are the kinds of faults, which are the names of the files of cases.
var kinds = map[string]rule{
	"background": {
		"A prepared summary takes effect only while its base marker is active and the second threshold is reached. " +
			"One transaction checks both.",
		[]string{"internal/store", "internal/service"},
	},
	"chained": {
		"The previous summary is one message that the next summary replaces. What surrounds it is written by us and " +
			"never taken from an answer. Without a new message there is nothing to compact.",
		[]string{"pipeline"},
	},
	"constraints": {
		"Limits that the user stated are searched in every summary and appended verbatim if they are missing. Pins " +
			"are live state and are in every context.",
		[]string{"pipeline"},
	},
	"crash": {
		"A marker is written by one transaction, completely or not at all. A stage's result and a vendor's answer " +
			"are stored under a key before the activity returns.",
		[]string{"internal/store", "activities"},
	},
	"durability": {
		"Workflows carry ids, numbers and hashes, never text. The activity of a stopped worker is retried by the " +
			"next one.",
		[]string{"activities", "workflows"},
	},
	"empty": {
		"A run that has nothing to compact ends before a model is asked, with one of three reasons. Empty texts are " +
			"left out where an API does not accept them.",
		[]string{"pipeline"},
	},
	"errors": {
		"Every failure has one error kind, and a table says which fallback follows. Breakers in the store limit the " +
			"attempts, also after a restart.",
		[]string{"internal/llm", "workflows", "internal/store"},
	},
	"estimate": {
		"Text is counted by its script, and the figure is scaled by the vendor's last one.",
		[]string{"pipeline"},
	},
	"fidelity": {
		"The tail begins with the user's last message and is never edited. Everything before it goes to the " +
			"summarizer, the user's words first.",
		[]string{"pipeline"},
	},
	"idempotency": {
		"A manual compaction of an unchanged conversation ends as already compacted before a model is asked.",
		[]string{"pipeline"},
	},
	"injection": {
		"Lines of the instructions, and of the text around a summary, are removed from every answer. Instructions " +
			"are never stored as messages.",
		[]string{"pipeline"},
	},
	"language": {
		"All prompts share one set of rules, and the language of the conversation is one of them.",
		[]string{"pipeline"},
	},
	"loop": {
		"An attempt that cannot help is not repeated before enough messages have arrived. The transaction of the " +
			"append decides by the outcome of the last run.",
		[]string{"internal/service", "internal/store"},
	},
	"media": {
		"Images count by their size in pixels, never by their bytes.",
		[]string{"pipeline"},
	},
	"model-switch": {
		"The limits and the summarizers are those in force when a run starts. A change of the model is evaluated " +
			"like an append.",
		[]string{"internal/service", "internal/conversation"},
	},
	"native": {
		"The vendor's own compaction is requested once, where the context is large enough, and stored only with " +
			"content. After every failure of it the next request is a prompt of ours.",
		[]string{"internal/llm", "activities", "workflows"},
	},
	"noop": {
		"A context is the stored messages, byte for byte, with edits only where a rule asks for one.",
		[]string{"pipeline"},
	},
	"one-huge": {
		"Above the limit the last fallbacks cut the middle out of oversized results in the tail, never out of the " +
			"user's last message.",
		[]string{"pipeline", "workflows"},
	},
	"open-call": {
		"A call that was never answered gets a result that says so when the context is written. The split ignores " +
			"it.",
		[]string{"pipeline"},
	},
	"overflow": {
		"The input is cut to the summarizer's window, with room for its answer, before the first request. If the " +
			"vendor reports an overflow all the same, the input is halved.",
		[]string{"pipeline", "activities", "internal/llm"},
	},
	"pairing": {
		"A call and its results are one unit that is never split. Half a unit is completed, moved or rendered as " +
			"text when the context is written.",
		[]string{"pipeline"},
	},
	"persist": {
		"A message with a client's own id is stored once. The version that a client expects is compared in the " +
			"transaction of the append.",
		[]string{"internal/store"},
	},
	"policy": {
		"One function decides whether a compaction starts automatically, for every trigger.",
		[]string{"pipeline"},
	},
	"prompt": {
		"An external summarizer gets the compactor's own system prompt. Text in the shape of a tool call is not a " +
			"summary.",
		[]string{"pipeline"},
	},
	"race": {
		"A conversation has one workflow. A marker is applied by a transaction that checks the base marker, the " +
			"covered messages and the lease of a reply.",
		[]string{"workflows", "internal/store"},
	},
	"refusal": {
		"The stop reason is read before the text. After a refusal the next summarizer is asked, and the same one is " +
			"not asked a second time.",
		[]string{"pipeline", "workflows"},
	},
	"secrets": {
		"With redaction on, credentials are removed from what is sent to an external summarizer and from its " +
			"summary. The transcript keeps them.",
		[]string{"pipeline"},
	},
	"shape": {
		"One function builds the context for all APIs, as a request that the target accepts. The summary is a " +
			"message of role user.",
		[]string{"pipeline", "pipeline/transcript"},
	},
	"slim": {
		"Every kind of content is rendered into one list and gets a fair share of one budget. Tool messages are " +
			"dropped in pairs.",
		[]string{"pipeline"},
	},
	"state": {
		"Live state is read from the store at each compaction and turn, never from the history. Messages that no " +
			"person wrote are marked as such when they are appended.",
		[]string{"pipeline", "internal/store"},
	},
	"subagent": {
		"A conversation has its own messages, figures and markers. Nothing is shared between two conversations.",
		[]string{"internal/store"},
	},
	"summary-output": {
		"One function extracts the summary from an answer or returns the error kind. Nothing else is ever stored as " +
			"a summary.",
		[]string{"pipeline", "workflows"},
	},
	"tail": {
		"The tail has a budget in tokens. Above it, the split moves to the next message at which no call is open.",
		[]string{"pipeline"},
	},
	"tenant": {
		"Every query names its tenant. A test calls all methods of the store with the id of another tenant.",
		[]string{"internal/store"},
	},
	"thinking": {
		"A message is stored as the bytes that arrived. A codec changes only the bytes that an edit names.",
		[]string{"pipeline", "pipeline/transcript"},
	},
	"trigger": {
		"One function computes the limit, in one order of precedence, and reaching it is enough.",
		[]string{"pipeline"},
	},
	"undo": {
		"Messages are never deleted: an undo makes the previous marker active, and the context is read from there.",
		[]string{"internal/store"},
	},
	"usage": {
		"A figure belongs to one request, to the message that it covers and to the context of that request. An " +
			"implausible figure is not used and is reported as such.",
		[]string{"pipeline", "internal/store", "internal/service"},
	},
}

// elsewhere are the cases that need a process to be killed, and the tests that play them.
var elsewhere = []struct{ name, kind, says, dir, test string }{
	{
		"a worker is killed while the summarizer answers", "crash",
		"No message is lost, and one marker is applied.",
		"workflows", "TestKilledWorkerInMidCall",
	},
	{
		"a process dies at each step of the commit", "crash",
		"There is one marker afterwards, and no answer is paid for twice.",
		"workflows", "TestKilledWorkerLosesNothing",
	},
}
