package draw

import (
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/pipeline"
)

// Skipped returns the reason of a skipped run as a sentence.
func Skipped(reason string) string {
	switch reason {
	case "empty":
		return "there is nothing to compact: the conversation has no messages"
	case "all_protected":
		return "nothing can be summarized: a compaction keeps all of these messages"
	case "already_compacted":
		return "the conversation is compacted already, and no message came since; --focus or another --summarizer " +
			"compacts it again"
	}
	return reason
}

// Failed returns the error of a failed run on one line.
func Failed(r wire.Run) string {
	text := r.Reason
	if r.ErrorKind != "" && string(r.ErrorKind) != string(r.Outcome) {
		text = fmt.Sprintf("%s: %s", r.ErrorKind, text)
	}
	return term.OneLine(text)
}

// Hint returns what can be done about a failed run, "" if there is nothing to suggest.
func Hint(kind pipeline.ErrorKind) string {
	const orDigest = "; --set settings.digest=always takes the digest instead"
	switch kind {
	case pipeline.Auth:
		return "check the vendor's API key: `precis config` shows where it comes from" + orDigest
	case pipeline.Quota:
		return "the vendor's account has no credit left: top it up, or name another model with --summarizer" + orDigest
	case pipeline.ModelNotFound:
		return "name a model that the vendor has with --summarizer, and check the vendor's key" + orDigest
	case pipeline.RateLimited, pipeline.Overloaded, pipeline.ServerError, pipeline.Network, pipeline.Timeout:
		return "try again later, or name a second model with --summarizer" + orDigest
	case pipeline.Refused, pipeline.EmptyOutput, pipeline.MalformedOutput, pipeline.ToolCallOutput,
		pipeline.OutputTooLong,
		pipeline.NotSmaller, pipeline.InputTokensExceeded, pipeline.InputTooLarge, pipeline.BadRequest,
		pipeline.MalformedHistory:
		return "name another model with --summarizer" + orDigest
	case pipeline.BudgetExceeded:
		return "raise settings.run_time_budget_seconds or settings.run_token_budget" + orDigest
	case pipeline.NoShrink:
		return "a shorter last message, or a model with a larger window, would help"
	case pipeline.Conflict:
		return "the conversation changed meanwhile: run it again"
	case pipeline.Internal:
		return "this is a bug in precis: please report it with the output of `precis show RUN`"
	}
	return ""
}
