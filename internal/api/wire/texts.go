package wire

import "precis/pipeline"

// RunTexts are the texts of a run that were requested with include.
type RunTexts struct {
	Prompts []RunPrompted `json:"prompts,omitempty" doc:"What the models were sent, in order."`
	Answers []RunAnswered `json:"answers,omitempty" doc:"What the models answered, in order."`
	Summary string        `json:"summary,omitempty" doc:"The summary message as the model sees it."`
	Checked *Verification `json:"checked,omitempty" doc:"What the check of the summary against its source found."`
	Context string        `json:"context,omitempty" doc:"The new context as it was recorded: one native message a line."`
	Omitted []RunOmitted  `json:"omitted,omitempty" doc:"The messages that a summarizer did not see in full."`
	Deleted int           `json:"deleted_texts,omitempty" doc:"How many texts were deleted with the conversation's content, or pruned."`
}

// RunPrompted is what one model was sent.
type RunPrompted struct {
	_ struct{} `doc:"What one model was sent."`

	Call       int    `json:"call"`
	Rung       string `json:"rung"`
	Summarizer string `json:"summarizer"`
	System     string `json:"system,omitempty" doc:"The system prompt of a request to an external summarizer."`
	User       string `json:"user,omitempty" doc:"The user message of a request to an external summarizer."`
	Body       string `json:"body,omitempty" doc:"The whole body of a request to the agent's own model, or to a vendor's own compaction."`
}

// RunAnswered is what one model answered.
type RunAnswered struct {
	_ struct{} `doc:"What one model answered."`

	Call       int                `json:"call"`
	Attempt    int                `json:"attempt"`
	Summarizer string             `json:"summarizer"`
	ErrorKind  pipeline.ErrorKind `json:"error_kind"`
	Text       string             `json:"text"`
	Raw        string             `json:"raw,omitempty" doc:"The answer as it arrived."`
}

// RunOmitted are the messages that one summarizer did not see in full.
type RunOmitted struct {
	_ struct{} `doc:"The messages that one summarizer did not see in full."`

	Call       int        `json:"call"`
	Summarizer string     `json:"summarizer"`
	Messages   []Omission `json:"messages"`
}

// Omission is a message that a summarizer did not see in full. It has the fields of pipeline.Omission, to be converted
// from it.
type Omission struct {
	Seq   int64         `json:"seq"`
	Role  pipeline.Role `json:"role"`
	Chars int           `json:"chars" doc:"Size of the rendered message in chars."`
	Fate  pipeline.Fate `json:"fate" doc:"What was done with the message."`
}

// Verification is the result of the check of a summary against its source. It has the fields of pipeline.Verification,
// to be converted from it.
type Verification struct {
	ConstraintsMissing     []string `json:"constraints_missing" doc:"Sentences in which the user set a limit and which the model left out."`
	UnsupportedIdentifiers []string `json:"unsupported_identifiers" doc:"Identifiers that are in the summary and nowhere in the source."`
	Misattributed          []string `json:"misattributed" doc:"Quotes of the user that are in no user message."`
	Appended               []string `json:"appended" doc:"What the check added to the summary."`
}
