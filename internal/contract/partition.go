package contract

// PartitionRequest asks which messages are summarized and which stay.
type PartitionRequest struct {
	Ref
	Head int64 `json:"head"`
	Full bool  `json:"full,omitempty"`
	// ModelAsked: the list has a model. An active digest is then replaced by its summary.
	ModelAsked bool `json:"model_asked,omitempty"`
	// Again also takes messages that are summarized already, because the context is too large all the same.
	Again bool `json:"again,omitempty"`
}

// PartitionResult refers to the plan.
type PartitionResult struct {
	// Nothing is "empty", "all_protected" or "already_compacted" if there is nothing to summarize.
	Nothing string `json:"nothing,omitempty"`
	// Plan is the hash of the plan artifact. With Nothing it only serves to shorten the tail.
	Plan string `json:"plan,omitempty"`
	// Summarize and Tail count messages.
	Summarize  int   `json:"summarise"`
	Tail       int   `json:"tail"`
	CoversFrom int64 `json:"covers_from"`
	CoversTo   int64 `json:"covers_to"`
	Warnings   int   `json:"warnings,omitempty"`
}
