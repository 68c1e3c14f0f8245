package conversation

import (
	"context"

	"precis/internal/redact"
	"precis/pipeline"
)

// Redaction takes secrets out of texts that are sent to a model, or that a model wrote. A nil Redaction, for settings
// without redact, changes nothing. After an error every text is "", and Err returns that error.
type Redaction struct {
	ctx context.Context
	now redact.Redactor
	// old is set for what a build with older rules recorded.
	old *pipeline.Redactor
	err error
}

// Redaction returns a redaction that also knows the secrets in messages and in the live state, so that it finds them
// where they are repeated. Without the setting redact it is nil. Only the context can make it fail.
func (v View) Redaction(ctx context.Context, messages []pipeline.Message) (*Redaction, error) {
	switch {
	case !v.Settings.Redact:
		return nil, nil
	case v.OldRules:
		old := pipeline.NewRedactor(messages)
		return &Redaction{old: &old}, nil
	}
	texts := []string{string(v.Conversation.System)}
	for _, e := range v.Source.Enrichments {
		texts = append(texts, string(e.Value))
	}
	for _, m := range messages {
		texts = append(texts, textsOf(m)...)
	}
	now, err := redact.New(ctx, texts)
	return &Redaction{ctx: ctx, now: now}, err
}

// textsOf returns the texts of a message, without reasoning.
func textsOf(m pipeline.Message) []string {
	var texts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case pipeline.PartReasoning:
		case pipeline.PartOpaque:
			texts = append(texts, string(p.Raw))
		default:
			texts = append(texts, p.Name, p.Text, p.Input)
			for _, c := range p.Content {
				texts = append(texts, c.Name, c.Text)
			}
		}
	}
	return texts
}

// Text returns a text without its secrets.
func (r *Redaction) Text(s string) string {
	switch {
	case r == nil:
		return s
	case r.old != nil:
		return r.old.Redact(s)
	case r.err != nil:
		return ""
	}
	s, r.err = r.now.Text(r.ctx, s)
	return s
}

// Func returns Text, or nil if nothing is to be redacted.
func (r *Redaction) Func() func(string) string {
	if r == nil {
		return nil
	}
	return r.Text
}

// Request returns a prepared request, a JSON document, without the secrets in its strings. It is the last thing that
// happens to a request before it is stored and sent, whatever it is made of. Without secrets it stays byte for byte the
// same, and otherwise up to the first one, so that a vendor's cache of the agent's own request is used that far.
func (r *Redaction) Request(body []byte) ([]byte, error) {
	if r == nil || r.old != nil {
		return body, nil
	}
	return r.now.JSON(r.ctx, body)
}

// Err returns the first error of Text.
func (r *Redaction) Err() error {
	if r == nil {
		return nil
	}
	return r.err
}
