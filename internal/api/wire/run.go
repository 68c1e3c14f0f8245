package wire

import (
	"encoding/json"
	"time"

	"precis"
	"precis/internal/contract"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Run is one execution of the compaction workflow.
type Run struct {
	_ struct{} `doc:"One execution of the compaction workflow. Fields that do not apply are empty; times that have not come are null."`

	ID            string             `json:"id"`
	Conversation  string             `json:"conversation"`
	WorkflowID    string             `json:"workflow_id"`
	TemporalRunID string             `json:"temporal_run_id"`
	Outcome       precis.Outcome     `json:"outcome" doc:"Empty while the run is in progress."`
	ErrorKind     pipeline.ErrorKind `json:"error_kind"`
	Reason        string             `json:"reason" doc:"Why the run was skipped, superseded or failed."`
	Trigger       RunTrigger         `json:"trigger"`
	Summarizer    string             `json:"summarizer" doc:"Who wrote the summary: self, native, VENDOR/MODEL or digest."`
	Rung          string             `json:"rung" doc:"The fallback that led to the summarizer, or first."`
	Prompt        RunPrompt          `json:"prompt"`
	Mode          pipeline.Mode      `json:"mode"`
	Digest        bool               `json:"digest" doc:"The summary is a digest: no model wrote it."`
	Focus         string             `json:"focus" doc:"What matters most, in the user's words."`
	Full          bool               `json:"full" doc:"Everything was summarized, also the last turn."`
	Covers        RunCovers          `json:"covers"`
	Marker        string             `json:"marker" doc:"The marker that the run wrote."`
	MarkerStatus  runs.MarkerStatus  `json:"marker_status" doc:"The marker's status now: prepared, applied, undone or discarded."`
	Undone        *time.Time         `json:"undone" doc:"When the marker was undone, or null."`
	TokensBefore  int                `json:"tokens_before" doc:"Size of the context before, in tokens."`
	TokensAfter   int                `json:"tokens_after" doc:"Size of the context after, in tokens."`
	Usage         RunUsage           `json:"usage"`
	Models        []RunModelUsage    `json:"models" doc:"The same model calls, by model."`
	Cost          *RunCost           `json:"cost" doc:"What the model calls cost, or null: no price is configured for any of the models."`
	Verification  json.RawMessage    `json:"verification" doc:"The result of the check of the summary against its source."`
	Versions      json.RawMessage    `json:"versions" doc:"Versions of the code and the configuration of the process that requested the run, with a hash of the settings of the run. The version of the prompt is in prompt, that of a worker's code in each step."`
	Steps         []RunStep          `json:"steps,omitempty" doc:"The attempts at the stages, in order. Not in lists."`
	Created       time.Time          `json:"created"`
	Started       *time.Time         `json:"started"`
	Finished      *time.Time         `json:"finished"`
	ReplayOf      string             `json:"replay_of" doc:"The run that this run repeats."`
	Replay        string             `json:"replay,omitempty" doc:"For a replay: recorded or live."`
	Apply         bool               `json:"apply,omitempty" doc:"For a live replay: its summary is to take effect."`
	Batch         string             `json:"batch,omitempty" doc:"For a replay: the batch that it belongs to."`
	Comparison    *RunComparison     `json:"comparison,omitempty" doc:"For a replay that has ended: how it compares with the original. Not in lists."`
	*RunTexts
}

// RunTrigger is what started a run.
type RunTrigger struct {
	_ struct{} `doc:"What started the run, with the numbers of its trigger stage. Sizes are in tokens."`

	Kind      pipeline.TriggerKind `json:"kind"`
	Used      int                  `json:"used" doc:"Size of the next request."`
	Limit     int                  `json:"limit" doc:"The size from which a compaction is due."`
	Window    int                  `json:"window" doc:"Size of the model's window."`
	Estimated bool                 `json:"estimated" doc:"used is a local estimate, not a figure of the vendor."`
	Reason    string               `json:"reason" doc:"The decision in one sentence with its numbers."`
}

// RunPrompt names the prompt of a run.
type RunPrompt struct {
	_ struct{} `doc:"The prompt that the summary was requested with."`

	Name    string `json:"name"`
	Version string `json:"version"`
}

// RunCovers are the messages that a summary stands for.
type RunCovers struct {
	_ struct{} `doc:"The messages that the summary stands for."`

	From     int64  `json:"from" doc:"Number of the first message."`
	To       int64  `json:"to" doc:"Number of the last message."`
	Messages int    `json:"messages" doc:"How many messages were summarized."`
	SHA256   string `json:"sha256" doc:"The conversation's hash chain at the last message. It commits to every message up to there."`
}

// RunUsage sums model calls.
type RunUsage struct {
	_ struct{} `doc:"The sum of the model calls, including failed ones, in tokens. input includes what was read from and written to the vendor's cache."`

	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	CacheWrite  int64 `json:"cache_write"`
	Output      int64 `json:"output"`
	Calls       int   `json:"calls"`
	Lost        int   `json:"lost" doc:"Calls whose answer never arrived. They may have been billed."`
}

// RunStep is one attempt at one stage.
type RunStep struct {
	_ struct{} `doc:"One attempt at one stage."`

	Stage      string                           `json:"stage"`
	Call       int                              `json:"call" doc:"Counts the stages that the run executed, from 1."`
	Attempt    int                              `json:"attempt" doc:"Counts the attempts at one call, from 1."`
	Rung       string                           `json:"rung" doc:"The fallback that led to the attempt, or first."`
	Summarizer string                           `json:"summarizer"`
	Outcome    contract.AttemptOutcome          `json:"outcome"`
	ErrorKind  pipeline.ErrorKind               `json:"error_kind"`
	Message    string                           `json:"message" doc:"The error, in one sentence."`
	Started    time.Time                        `json:"started"`
	MS         int64                            `json:"ms" doc:"How long the attempt took, in milliseconds."`
	Numbers    json.RawMessage                  `json:"numbers" doc:"The figures of the stage."`
	Artifacts  map[contract.ArtifactKind]string `json:"artifacts" doc:"SHA-256 of the texts that the attempt read and wrote, by role."`
	Next       string                           `json:"next" doc:"The fallback that followed."`
	Worker     string                           `json:"worker" doc:"The worker process, with the version of its code."`
}

// RunList is a page of runs.
type RunList struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next,omitempty" doc:"Cursor of the next page. Left out on the last page."`
}

// NewReplayInput asks for a replay of a run.
type NewReplayInput struct {
	Live        bool   `json:"live,omitempty" doc:"Call the models again. Otherwise their answers are read from the record, and no model is called."`
	Apply       bool   `json:"apply,omitempty" doc:"With live: make the summary take effect, unless the conversation has changed since."`
	Summarizer  string `json:"summarizer,omitempty" limit:"summarizer_list" doc:"With live: the summarizers to try, in order: self,openai/NAME."`
	Prompt      string `json:"prompt,omitempty" limit:"word" doc:"With live: name of the prompt."`
	MaxChars    int    `json:"max_chars,omitempty" minimum:"0" doc:"With live: maximum size of the summarizer's input in chars."`
	Focus       string `json:"focus,omitempty" limit:"focus" doc:"With live: what matters most."`
	WaitSeconds int    `json:"wait_seconds,omitempty" minimum:"0" maximum:"600" doc:"How long to wait for the end of the run."`
}
