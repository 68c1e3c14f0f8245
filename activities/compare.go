package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// divergedError is that error.
type divergedError struct{ says string }

func (e *divergedError) Error() string { return e.says }

// finalError is a failure from the record. It is not tried again, since it would be the same.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// follows returns an error unless the original made this call too.
func (at *attempt) follows() error {
	r, ref := at.record, at.ref
	if r.endsHere() {
		return &finalError{&pipeline.Error{Kind: pipeline.Cancelled, Message: "the original was cancelled here"}}
	}
	if r.last != nil {
		return nil
	}
	took := "nothing: the record ends"
	for _, s := range r.original.Attempts {
		if s.Call == ref.Call {
			took = stepWords(s.Stage, s.Rung, s.Summarizer)
		}
	}
	now := stepWords(r.stage, ref.Rung, "")
	at.difference(wire.RunDifference{What: "step", Recorded: took, Replayed: now})
	return &divergedError{fmt.Sprintf("step %d of the record is %s, the replay came to %s", ref.Call, took, now)}
}

func stepWords(stage contract.Stage, rung contract.Fallback, summarizer string) string {
	words := string(stage)
	if summarizer != "" {
		words += " by " + summarizer
	}
	if rung != "" && rung != contract.RungFirst {
		words += " (" + string(rung) + ")"
	}
	return words
}

// compare notes where the attempt of a replay differs from the record, and stores that. It returns the error that the
// attempt ends with: a failure that was recorded is not tried again.
func (a *Activities) compare(ctx context.Context, at *attempt, result any, failure error) error {
	rec := at.record
	e := asError(failure)
	if failure != nil && e == nil {
		return failure // an error of the database, for example: Temporal tries again
	}
	recordedKind, recordedMessage := rec.failure()
	switch {
	case e != nil && (rec.kept != nil || e.Kind != recordedKind):
		recorded := "it went well"
		if rec.kept == nil {
			recorded = fmt.Sprintf("%s: %s", recordedKind, recordedMessage)
		}
		at.difference(wire.RunDifference{
			What: "error", Recorded: recorded,
			Replayed: fmt.Sprintf("%s: %s", e.Kind, shorten(e.Message)),
		})
	case e == nil && rec.kept == nil:
		at.difference(wire.RunDifference{
			What: "error", Recorded: fmt.Sprintf("%s: %s", recordedKind, recordedMessage),
			Replayed: "it went well",
		})
	case e == nil:
		if err := at.compareResult(result); err != nil {
			return err
		}
	}
	if err := a.compareArtifacts(ctx, at); err != nil {
		return err
	}
	if err := a.keepDifferences(ctx, at); err != nil {
		return err
	}
	if failure != nil {
		return &finalError{failure}
	}
	return nil
}

// notCompared are fields of a stage's result that depend on where it ran, or that the artifacts show in full.
var notCompared = map[string]bool{
	"model_queue": true, "spent_at": true, "plan": true, "input": true, "summary": true, "native": true,
	"native_use": true,
}

// compareResult notes the first figure of a result that differs from the recorded one.
func (at *attempt) compareResult(result any) error {
	encoded, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode a stage's result: %w", err)
	}
	var was, is any
	if err := errors.Join(unmarshalNumbers(at.record.kept.Result, &was), unmarshalNumbers(encoded, &is)); err != nil {
		return fmt.Errorf("read a stage's result: %w", err)
	}
	if name, old, now := firstDifference("", was, is); old != now {
		at.difference(wire.RunDifference{
			What: "result" + name, Recorded: pipeline.Truncate(old, excerptChars),
			Replayed: pipeline.Truncate(now, excerptChars),
		})
	}
	return nil
}

func unmarshalNumbers(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// firstDifference finds the first value that differs, by the names on the way to it; two equal texts: none does.
func firstDifference(name string, was, is any) (where, recorded, replayed string) {
	a, isObject := was.(map[string]any)
	b, both := is.(map[string]any)
	if isObject && both {
		keys := map[string]bool{}
		for k := range a {
			keys[k] = true
		}
		for k := range b {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			if name == "" && notCompared[k] {
				continue
			}
			if where, old, now := firstDifference(name+"."+k, a[k], b[k]); old != now {
				return where, old, now
			}
		}
		return name, "", ""
	}
	old, now := jsonText(was), jsonText(is)
	return name, old, now
}

// jsonText is a value as JSON, "nothing" for none.
func jsonText(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// comparedRoles are the artifacts of an attempt that are compared, in the order in which a stage writes them.
var comparedRoles = []contract.ArtifactKind{
	contract.ArtifactPlan, contract.ArtifactInput, contract.ArtifactOmitted, contract.ArtifactAnswer,
	contract.ArtifactVerification, contract.ArtifactSummary, contract.ArtifactNative, contract.ArtifactContext,
}

// compareArtifacts compares the attempt's artifacts with those of the original.
func (a *Activities) compareArtifacts(ctx context.Context, at *attempt) error {
	for _, role := range comparedRoles {
		was, is := at.record.artifact(role), at.artifacts[role]
		if was == is || was == "" && at.record.kept == nil {
			continue
		}
		d := wire.RunDifference{What: string(role), Recorded: "nothing", Replayed: "nothing"}
		if was != "" && is != "" {
			old, err := a.Store.Artifacts.Get(ctx, at.ref.Tenant, was)
			if err != nil {
				return errPruned(at.record.original, "its "+string(role), err)
			}
			now, err := a.Store.Artifacts.Get(ctx, at.ref.Tenant, is)
			if err != nil {
				return err
			}
			d.At, d.Message, d.Recorded, d.Replayed = part(old, now)
			if role != contract.ArtifactContext {
				d.Message = 0
			}
		} else if was != "" {
			d.Recorded = was
		} else {
			d.Replayed = is
		}
		at.difference(d)
	}
	return nil
}

// excerptChars is how much of each of two texts a difference shows, half of it before the place.
const excerptChars = 160

// part finds where two texts differ first: the byte, the line from 1, and an excerpt of both around it.
func part(was, is []byte) (at, line int, old, now string) {
	for at < len(was) && at < len(is) && was[at] == is[at] {
		at++
	}
	for at > 0 && at < len(was) && !utf8.RuneStart(was[at]) {
		at--
	}
	return at, 1 + bytes.Count(was[:at], []byte("\n")), around(was, at), around(is, at)
}

func around(text []byte, at int) string {
	from, to := max(at-excerptChars/2, 0), min(at+excerptChars/2, len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	out := strings.ToValidUTF8(string(text[from:to]), "\uFFFD")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// keepDifferences stores the differences as an artifact, since their excerpts are text of the conversation.
func (a *Activities) keepDifferences(ctx context.Context, at *attempt) error {
	if len(at.differences) == 0 {
		return nil
	}
	for i := range at.differences {
		d := &at.differences[i]
		d.Stage, d.Call, d.Rung = string(at.stage), at.ref.Call, string(at.ref.Rung)
		if at.record.last != nil {
			d.Summarizer = at.record.last.Summarizer
		}
	}
	data, err := json.Marshal(at.differences)
	if err != nil {
		return fmt.Errorf("encode the differences: %w", err)
	}
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(at.ref), contract.ArtifactDifference, data)
	at.artifact(contract.ArtifactDifference, artifact.SHA256)
	return err
}

// differencesOf reads the differences that the attempts of a replay found, in order.
func (a *Activities) differencesOf(ctx context.Context, run runs.Run) ([]wire.RunDifference, error) {
	var all []wire.RunDifference
	seen := map[int]bool{}
	for _, s := range run.Attempts {
		sha := s.Artifacts[contract.ArtifactDifference]
		if sha == "" || seen[s.Call] {
			continue
		}
		seen[s.Call] = true
		data, err := a.Store.Artifacts.Get(ctx, run.Ref.Tenant, sha)
		if err != nil {
			return nil, err
		}
		var list []wire.RunDifference
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("read the differences: %w", err)
		}
		all = append(all, list...)
	}
	return all, nil
}
