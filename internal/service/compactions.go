package service

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// CompactRequest requests a manual compaction.
type CompactRequest struct {
	Focus         string
	Full          bool
	ForceExternal bool
	// Prompt is the name of a prompt, Summarizer a list such as "self,openai/NAME". If they are "", the settings apply.
	Prompt, Summarizer string
	// Wait is how long to wait for the end of the run; 0 returns at once.
	Wait time.Duration
}

func markerOf(m markers.Marker, active string) *wire.Marker {
	return &wire.Marker{
		ID: m.ID, MarkerStats: *conversation.MarkerOf(&m), Status: m.Status, Reason: m.Reason, Origin: m.Origin,
		TokensBefore: m.TokensBefore, TokensAfter: m.TokensAfter, Active: m.ID == active,
		Created: m.Created.UTC(), Applied: timeOrNull(m.Applied), Ended: timeOrNull(m.Ended),
	}
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// ReportedMarker is a compaction that the agent's own runtime made.
type ReportedMarker struct {
	// Summary is the native message that replaces the covered ones.
	Summary json.RawMessage
	// CoversTo is the number of the last covered message.
	CoversTo                  int64
	TokensBefore, TokensAfter int
}

// Compact requests a manual compaction, whatever the size of the context, and waits up to req.Wait for its end; done
// reports whether it has ended. If the conversation has an active run, Compact returns that one, and a run that only
// prepares its summary then applies it. A manual compaction ignores the conversation's breaker and closes it. The error
// has CodeReplyOpen while a reply is open.
func (s *Service) Compact(ctx context.Context, ref store.ConversationRef,
	req CompactRequest,
) (run wire.Run, done bool, err error) {
	asked, err := s.ask(ctx, ref, req)
	if err != nil {
		return run, false, refused(err)
	}
	if req.Wait > 0 {
		waitCtx, cancel := context.WithTimeout(ctx, req.Wait)
		defer cancel()
		ended, err := s.wait(waitCtx, asked)
		switch {
		case err == nil:
			return runreport.Of(ended), true, nil
		case ctx.Err() != nil:
			return run, false, ctx.Err()
		case !errors.Is(err, context.DeadlineExceeded):
			return run, false, refused(err)
		}
	}
	return runreport.Of(asked), false, nil
}

// ask requests a manual compaction.
func (s *Service) ask(ctx context.Context, ref store.ConversationRef, req CompactRequest) (runs.Run, error) {
	if err := s.checkCompact(req); err != nil {
		return runs.Run{}, err
	}
	run, _, err := launch.Ask(ctx, s.Store, s.Config, ref, runs.Request{
		Kind: pipeline.TriggerManual, Focus: req.Focus, Full: req.Full, ForceExternal: req.ForceExternal,
		Prompt: req.Prompt, Summarizer: req.Summarizer, Trigger: json.RawMessage(`{"kind":"manual"}`),
	})
	if err != nil {
		return run, err
	}
	return run, s.Store.Breakers.Reset(ctx, breakers.OfConversation(ref))
}

// compact requests a manual compaction and waits for its end. It returns the run and the conversation after it. If the
// context ends first, the run is cancelled and returned with the error of the context.
func (s *Service) compact(ctx context.Context, ref store.ConversationRef, req CompactRequest,
	f Follower,
) (run runs.Run, after conversation.View, err error) {
	if run, err = s.ask(ctx, ref, req); err != nil {
		return run, after, err
	}
	if run, err = s.followRun(ctx, run, f); err != nil {
		return run, after, err
	}
	after, err = s.load(ctx, ref)
	return run, after, err
}

// Compacted is the result of a manual compaction.
type Compacted struct {
	// MessagesBefore is the number of messages in the context before it.
	MessagesBefore int
	Run            wire.Run
	// Context is the context after it. It is empty if the run was cancelled.
	Context BuiltContext
}

// CompactAndWait requests a manual compaction as Compact does, and waits for its end however long that takes. If the
// context ends first, the run is cancelled: the result has the run as it ended, and the error is that of the context.
func (s *Service) CompactAndWait(ctx context.Context, ref store.ConversationRef, req CompactRequest,
	f Follower,
) (Compacted, error) {
	before, err := s.load(ctx, ref)
	if err != nil {
		return Compacted{}, refused(err)
	}
	was, err := before.Context(ctx)
	if err != nil {
		return Compacted{}, refused(err)
	}
	out := Compacted{MessagesBefore: len(was.Items)}
	run, after, err := s.compact(ctx, ref, req, f)
	out.Run = runreport.Of(run)
	if err != nil {
		return out, refused(err)
	}
	out.Context, err = builtOf(ctx, after)
	return out, err
}

// checkCompact returns an error for the first field that is not valid.
func (s *Service) checkCompact(req CompactRequest) error {
	if req.Prompt != "" {
		if _, err := pipeline.PromptNamed(req.Prompt); err != nil {
			return invalid("prompt", "%s", err)
		}
	}
	if err := s.CheckSummarizers(req.Summarizer); err != nil {
		return err
	}
	if req.Wait < 0 {
		return invalid("wait_seconds", "is negative")
	}
	return nil
}

// CheckSummarizers returns an error if a list of summarizers, such as "self,openai/NAME", is malformed or names a
// vendor that is not configured. An empty list is valid.
func (s *Service) CheckSummarizers(list string) error {
	if list == "" {
		return nil
	}
	if n := strings.Count(list, ",") + 1; n > pipeline.MaxSummarizers {
		return invalid("summarizer", "has %d entries; there are at most %d", n, pipeline.MaxSummarizers)
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == string(pipeline.SummarizerSelf) || name == string(pipeline.SummarizerDigest) {
			continue
		}
		vendor, _, err := pipeline.SummarizerSpec{Model: name}.Split()
		if err != nil {
			return invalid("summarizer", "%q is neither self, digest nor VENDOR/MODEL", name)
		}
		if _, ok := s.Config.Vendors[vendor]; !ok {
			return invalid("summarizer", "no vendor %q is configured; there are %s", vendor,
				strings.Join(slices.Sorted(maps.Keys(s.Config.Vendors)), ", "))
		}
	}
	return nil
}

// ListCompactions returns a page of a conversation's compactions, newest first, at most limit (1 to 1000) runs, and
// between them the compactions that the agent reported.
func (s *Service) ListCompactions(ctx context.Context, ref store.ConversationRef, cursor string,
	limit int,
) (list []wire.Compaction, next string, err error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return nil, "", refused(err)
	}
	found, next, err := s.Store.Runs.List(ctx, ref.Tenant,
		runs.Filter{Conversation: ref.ID, Compactions: true, Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", refused(err)
	}
	markers, err := s.Store.Markers.List(ctx, ref)
	if err != nil {
		return nil, "", refused(err)
	}
	byRun := map[string]*wire.Marker{}
	var others []*wire.Marker // not of a run, newest first
	for _, m := range markers {
		if out := markerOf(m, c.ActiveMarker); m.Run != "" {
			byRun[m.Run] = out
		} else {
			others = append(others, out)
		}
	}
	// A page has the reported markers that are older than the last run of the page before and newer than its own last
	// run.
	if cursor != "" && len(found) > 0 {
		others = olderThan(others, found[0].Created)
	}
	for _, r := range found {
		for len(others) > 0 && others[0].Created.After(r.Created) {
			list, others = append(list, wire.Compaction{Marker: others[0]}), others[1:]
		}
		run := runreport.Priced(runreport.Of(r), s.Config.Prices)
		list = append(list, wire.Compaction{Run: &run, Marker: byRun[r.Ref.ID]})
	}
	if next == "" {
		for _, m := range others {
			list = append(list, wire.Compaction{Marker: m})
		}
	}
	return list, next, nil
}

// olderThan returns the markers, newest first, that are older than t.
func olderThan(markers []*wire.Marker, t time.Time) []*wire.Marker {
	for len(markers) > 0 && !markers[0].Created.Before(t) {
		markers = markers[1:]
	}
	return markers
}

// GetRun returns a run with its attempts. include lists the texts to add: prompts, answers, summary, context, omitted.
func (s *Service) GetRun(ctx context.Context, ref store.RunRef, include []string) (wire.Run, error) {
	var want runreport.Include
	for _, name := range include {
		switch name {
		case "prompts":
			want.Prompts = true
		case "answers":
			want.Answers = true
		case "summary":
			want.Summary = true
		case "context":
			want.Context = true
		case "omitted":
			want.Omitted = true
		default:
			return wire.Run{}, invalid("include",
				"names %q; it is a list of prompts, answers, summary, context and omitted", name)
		}
	}
	found, err := s.Store.Runs.Get(ctx, ref)
	if err != nil {
		return wire.Run{}, refused(err)
	}
	run := runreport.Priced(runreport.Of(found), s.Config.Prices)
	if want.Any() {
		if run.RunTexts, err = runreport.Load(ctx, s.Store, found, want); err != nil {
			return run, refused(err)
		}
	}
	run.Comparison, err = runreport.LoadComparison(ctx, s.Store, found)
	run.Comparison = runreport.PricedComparison(run.Comparison, s.Config.Prices)
	return run, refused(err)
}

// CancelRun cancels a run and returns it when it has ended: as cancelled, unless its marker was applied just before. If
// the run has prepared a summary, the summary is discarded.
func (s *Service) CancelRun(ctx context.Context, ref store.RunRef) (wire.Run, error) {
	run, err := s.Store.Runs.Get(ctx, ref)
	if err != nil {
		return wire.Run{}, refused(err)
	}
	switch {
	case run.Outcome == "" && s.Temporal != nil:
		run, err = s.launcher().Cancel(ctx, run)
	case run.Outcome == "":
		return wire.Run{}, &Error{
			Code:   CodeUnavailable,
			Detail: "Temporal is not connected: a run cannot be cancelled",
		}
	case run.Outcome == precis.OutcomePrepared:
		conv := store.ConversationRef{Tenant: ref.Tenant, ID: run.Conversation}
		if err = s.Store.Markers.DiscardPreparedOf(ctx, conv, ref.ID, "it was cancelled by hand"); err == nil {
			run, err = s.Store.Runs.Get(ctx, ref)
		}
	}
	return runreport.Of(run), refused(err)
}

// Undo undoes the newest compaction. No automatic one starts until the next user message.
func (s *Service) Undo(ctx context.Context, ref store.ConversationRef) (wire.Undone, error) {
	u, err := s.Store.Markers.Undo(ctx, ref, "")
	if err != nil {
		return wire.Undone{}, refused(err)
	}
	out := wire.Undone{Undone: markerOf(u.Marker, "")}
	if u.Active != nil {
		out.Marker = markerOf(*u.Active, u.Active.ID)
	}
	return out, nil
}

// ReportMarker stores a compaction that the agent's own runtime made. The caller's key must be trusted, because a
// forged compaction would hide the history.
func (s *Service) ReportMarker(ctx context.Context, ref store.ConversationRef, m ReportedMarker,
	trusted bool,
) (wire.Marker, error) {
	if !trusted {
		return wire.Marker{}, &Error{
			Code:   CodeForbidden,
			Detail: "this key may not report compactions: make one that is trusted (precis keys create --trusted)",
		}
	}
	if m.TokensBefore < 0 || m.TokensAfter < 0 {
		return wire.Marker{}, invalid("tokens_before", "token counts are not negative")
	}
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return wire.Marker{}, refused(err)
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		return wire.Marker{}, refused(err)
	}
	summary, err := codec.Decode(m.Summary)
	if err != nil {
		return wire.Marker{}, invalid("summary", "is not a message in the %s format: %s", c.Format, plain(err))
	}
	text := pipeline.RenderMessage(summary)
	if text == "" {
		return wire.Marker{}, invalid("summary", "has no text")
	}
	marker, err := s.Store.Markers.Report(ctx, ref, markers.Reported{
		Origin: markers.OriginAgent, CoversTo: m.CoversTo, Summary: []byte(text),
		SummaryTokens: pipeline.EstimateText(text), TokensBefore: m.TokensBefore, TokensAfter: m.TokensAfter,
	})
	if err != nil {
		return wire.Marker{}, refused(err)
	}
	return *markerOf(marker, marker.ID), nil
}

// Events returns a conversation's events after the given number, oldest first, at most limit (1 to 1000).
func (s *Service) Events(ctx context.Context, ref store.ConversationRef, after int64,
	limit int,
) ([]timeline.Event, error) {
	list, err := s.Store.Timeline.After(ctx, ref, after, limit)
	return list, refused(err)
}
