package runreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Include selects the texts of a run to load.
type Include struct {
	Prompts, Answers, Summary, Context, Omitted bool
}

// Any reports whether any text is selected.
func (i Include) Any() bool { return i != Include{} }

// Load returns the selected texts of a run, which must have its attempts.
func Load(ctx context.Context, s *store.Store, r runs.Run, want Include) (*wire.RunTexts, error) {
	l := loader{store: s, tenant: r.Ref.Tenant, texts: &wire.RunTexts{}}
	for _, step := range r.Attempts {
		if err := l.step(ctx, step, want); err != nil {
			return nil, err
		}
	}
	if want.Summary && r.Marker != "" {
		m, err := s.Markers.Get(ctx, store.ConversationRef{Tenant: r.Ref.Tenant, ID: r.Conversation}, r.Marker)
		if err != nil {
			return nil, err
		}
		text, err := l.artifact(ctx, m.Summary)
		if err != nil {
			return nil, err
		}
		l.texts.Summary = string(text)
	}
	if want.Context && r.Facts.Context != "" {
		text, err := l.artifact(ctx, r.Facts.Context)
		if err != nil {
			return nil, err
		}
		l.texts.Context = string(text)
	}
	return l.texts, nil
}

type loader struct {
	store  *store.Store
	tenant string
	texts  *wire.RunTexts
}

// artifact returns the content of an artifact, nil if it was pruned or deleted.
func (l *loader) artifact(ctx context.Context, sha string) ([]byte, error) {
	data, err := l.store.Artifacts.Get(ctx, l.tenant, sha)
	if errors.Is(err, store.ErrNotFound) {
		l.texts.Deleted++
		return nil, nil
	}
	return data, err
}

func (l *loader) step(ctx context.Context, step runs.Attempt, want Include) error {
	read := func(wanted bool, role contract.ArtifactKind, take func(data []byte) error) error {
		sha := step.Artifacts[role]
		if !wanted || sha == "" {
			return nil
		}
		data, err := l.artifact(ctx, sha)
		if err != nil || data == nil {
			return err
		}
		if err := take(data); err != nil {
			return fmt.Errorf("read the %s of step %d: %w", role, step.Call, err)
		}
		return nil
	}
	return errors.Join(
		read(want.Prompts, contract.ArtifactInput, func(data []byte) error { return l.prompt(step, data) }),
		read(want.Omitted, contract.ArtifactOmitted, func(data []byte) error {
			o := wire.RunOmitted{Call: step.Call, Summarizer: step.Summarizer}
			if err := json.Unmarshal(data, &o.Messages); err != nil {
				return err
			}
			l.texts.Omitted = append(l.texts.Omitted, o)
			return nil
		}),
		read(want.Summary, contract.ArtifactVerification, func(data []byte) error {
			l.texts.Checked = &wire.Verification{}
			return json.Unmarshal(data, l.texts.Checked)
		}),
		read(want.Answers, contract.ArtifactAnswer, func(data []byte) error { return l.answer(step, data) }),
	)
}

func (l *loader) prompt(step runs.Attempt, data []byte) error {
	p := wire.RunPrompted{Call: step.Call, Rung: string(step.Rung), Summarizer: step.Summarizer}
	switch step.Summarizer {
	case string(pipeline.SummarizerSelf), string(pipeline.SummarizerNative):
		p.Body = string(data)
	default:
		var input struct{ System, User string }
		if err := json.Unmarshal(data, &input); err != nil {
			return err
		}
		p.System, p.User = input.System, input.User
	}
	l.texts.Prompts = append(l.texts.Prompts, p)
	return nil
}

func (l *loader) answer(step runs.Attempt, data []byte) error {
	var kept struct {
		Answer pipeline.Answer    `json:"answer"`
		Kind   pipeline.ErrorKind `json:"kind"`
		Raw    string             `json:"raw"`
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	kind := step.ErrorKind
	if kind == "" {
		kind = kept.Kind
	}
	l.texts.Answers = append(l.texts.Answers, wire.RunAnswered{
		Call: step.Call, Attempt: step.Attempt, Summarizer: step.Summarizer, ErrorKind: kind,
		Text: strings.TrimSpace(kept.Answer.Text), Raw: kept.Raw,
	})
	return nil
}
