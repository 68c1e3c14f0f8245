package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// plan is what a run does to its conversation, kept as an artifact: sequence numbers, no text. Every later
// stage works on it, so that all of them mean the same messages.
type plan struct {
	Head int64  `json:"head"`
	Base string `json:"base,omitempty"`
	// BeneathDigest: the active marker is a digest which this run replaces, so the messages that it covers count again.
	BeneathDigest bool `json:"beneath_digest,omitempty"`
	// Replaces: the base is the marker of the run that this one replays, see onTopOf. It is never stored.
	Replaces bool `json:"-"`
	// Summarize are the messages that are summarized, in order, beside the base's summary.
	Summarize []int64 `json:"summarise"`
	// Tail are the messages that stay, in order; what came after Head stays as well.
	Tail []int64 `json:"tail"`
	// Marker is what the marker will say; its summary and tokens are not known yet.
	CoversFrom      int64   `json:"covers_from"`
	CoversTo        int64   `json:"covers_to"`
	CoveredMessages int     `json:"covered_messages"`
	CoveredChain    string  `json:"covered_chain"`
	Carried         []int64 `json:"carried,omitempty"`
	// SummarizeTokens is the local estimate of what the summary replaces.
	SummarizeTokens int                     `json:"summarise_tokens"`
	Warnings        []pipeline.ShapeWarning `json:"warnings,omitempty"`
}

// Partition plans what is summarized and what stays verbatim.
func (a *Activities) Partition(ctx context.Context, req contract.PartitionRequest) (contract.PartitionResult, error) {
	var notes contract.PartitionNotes
	return recorded(ctx, a, contract.StagePartition, req.Ref, "", &notes, func(ctx context.Context, at *attempt) (
		contract.PartitionResult, error,
	) {
		return once(ctx, a, at, &notes, func(run runs.Run) (contract.PartitionResult, error) {
			return a.partition(ctx, at, req, run)
		})
	})
}

func (a *Activities) partition(ctx context.Context, at *attempt, req contract.PartitionRequest, run runs.Run) (
	contract.PartitionResult, error,
) {
	active, err := a.load(ctx, at, req.Head, false)
	if err != nil {
		return contract.PartitionResult{}, err
	}
	beneath := req.ModelAsked && active.Marker != nil && active.Marker.Digest
	view, err := a.whole(ctx, at, active, beneath)
	if err != nil {
		return contract.PartitionResult{}, err
	}
	live := view.Live()
	part, err := pipeline.PartitionMessages(ctx, pipeline.PartitionInput{
		Messages: live, Settings: view.Settings.Settings, Full: req.Full, Window: view.Conversation.Window,
		Calibration: view.Calibration(), SeenSeq: view.SeenSeq(),
		Again: beneath || req.Again || run.Focus != "" || run.Prompt != "" || run.Summarizer != "",
	})
	if err != nil {
		return contract.PartitionResult{}, err
	}
	if part.Nothing == pipeline.NothingEmpty {
		return contract.PartitionResult{Nothing: part.Nothing}, nil
	}
	p := tailPlan(active, req.Head)
	if part.Nothing == "" {
		if p, err = newPlan(view, active, live, part, req.Head); err != nil {
			return contract.PartitionResult{}, err
		}
		p.BeneathDigest = beneath
	}
	for _, w := range p.Warnings {
		if err := a.warn(ctx, at, w); err != nil {
			return contract.PartitionResult{}, err
		}
	}
	data, err := json.Marshal(p)
	if err != nil {
		return contract.PartitionResult{}, fmt.Errorf("encode the plan: %w", err)
	}
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(req.Ref), contract.ArtifactPlan, data)
	if err != nil {
		return contract.PartitionResult{}, err
	}
	at.artifact(contract.ArtifactPlan, artifact.SHA256)
	return contract.PartitionResult{
		Nothing: part.Nothing, Plan: artifact.SHA256, Summarize: len(p.Summarize), Tail: len(p.Tail),
		CoversFrom: p.CoversFrom, CoversTo: p.CoversTo, Warnings: len(p.Warnings),
	}, nil
}

// tailPlan summarizes nothing: what the active marker covers stays covered, and the tail behind it can be squeezed.
func tailPlan(active conversation.View, head int64) plan {
	p := plan{Head: head, Base: active.Conversation.ActiveMarker}
	if m := active.Marker; m != nil {
		p.CoversFrom, p.CoversTo, p.CoveredMessages = m.CoversFrom, m.CoversTo, m.CoveredMessages
		p.Carried = m.Carried
	}
	p.CoveredChain = store.Hash{}.String()
	if chain, ok := active.ChainAt(p.CoversTo); ok {
		p.CoveredChain = chain.String()
	}
	for _, m := range active.Messages {
		if m.Seq > p.CoversTo {
			p.Tail = append(p.Tail, m.Seq)
		}
	}
	return p
}

// newPlan turns indexes into sequence numbers. The marker covers everything up to its last summarized
// message; what stays verbatim among that is carried.
func newPlan(view, active conversation.View, live []pipeline.Message, part pipeline.Partition,
	head int64,
) (plan, error) {
	p := plan{
		Head: head, Base: view.Conversation.ActiveMarker, Warnings: part.Warnings,
		CoversFrom: part.CoversFrom, CoversTo: part.CoversTo,
	}
	if active.Marker != nil {
		p.CoversTo = max(p.CoversTo, active.Marker.CoversTo)
		if p.CoversFrom == 0 {
			p.CoversFrom = active.Marker.CoversFrom
		}
	}
	for _, i := range part.ToSummarize {
		p.SummarizeTokens += live[i].Tokens
		if live[i].Seq > 0 {
			p.Summarize = append(p.Summarize, live[i].Seq)
		}
	}
	carried := map[int64]bool{}
	for _, list := range [][]int{part.System, part.UserInfo, part.Carried, part.Tail} {
		for _, i := range list {
			if seq := live[i].Seq; seq > 0 && seq <= p.CoversTo {
				carried[seq] = true
			}
		}
	}
	for _, m := range view.Messages {
		if carried[m.Seq] {
			p.Carried = append(p.Carried, m.Seq)
		}
	}
	for _, i := range part.Tail {
		p.Tail = append(p.Tail, live[i].Seq)
	}
	p.CoveredMessages = max(len(p.Summarize), 1)
	chain, ok := view.ChainAt(p.CoversTo)
	if !ok {
		return p, pipeline.Errorf(pipeline.Internal,
			"message %d, the last one to be covered, is not among the live ones", p.CoversTo)
	}
	p.CoveredChain = chain.String()
	return p, nil
}

// warn adds an event about a tail that had to be repaired.
func (a *Activities) warn(ctx context.Context, at *attempt, w pipeline.ShapeWarning) error {
	data, err := json.Marshal(map[string]any{"code": w.Code, "call_ids": w.CallIDs, "detail": w.Detail})
	if err != nil {
		return fmt.Errorf("encode a warning: %w", err)
	}
	return a.addEvent(ctx, at, timeline.Event{Kind: timeline.Warning, Data: data})
}

// plan reads the plan of a run.
func (a *Activities) plan(ctx context.Context, tenant, sha string) (plan, error) {
	var p plan
	data, err := a.Store.Artifacts.Get(ctx, tenant, sha)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("read the run's plan: %w", err)
	}
	return p, nil
}

// kept picks the messages that stay verbatim, carried ones first.
func (p plan) kept(view conversation.View) []pipeline.Message {
	stays := make(map[int64]bool, len(p.Tail)+len(p.Carried))
	for _, list := range [][]int64{p.Tail, p.Carried} {
		for _, seq := range list {
			stays[seq] = true
		}
	}
	var out []pipeline.Message
	for _, m := range view.Messages {
		if stays[m.Seq] {
			out = append(out, m)
		}
	}
	return out
}

// source picks the messages that a plan summarizes out of the live ones, the prior summary first.
func (p plan) source(view conversation.View) []pipeline.Message {
	wanted := make(map[int64]bool, len(p.Summarize))
	for _, seq := range p.Summarize {
		wanted[seq] = true
	}
	var out []pipeline.Message
	for _, m := range view.Live() {
		if m.Seq == 0 || wanted[m.Seq] {
			out = append(out, m)
		}
	}
	return out
}
