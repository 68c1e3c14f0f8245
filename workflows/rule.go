package workflows

import (
	"slices"

	"precis/internal/contract"
	"precis/pipeline"
)

// Rule is a row of the ladder: the failures that it is for, and the fallbacks to take in order.
type Rule struct {
	Stage      contract.Stage          // "" for any
	Summarizer pipeline.SummarizerKind // "" for any
	Kinds      []pipeline.ErrorKind
	Fallbacks  []Allowance
}

// Allowance is a fallback and how often a rule allows it, 0 for any number of times.
type Allowance struct {
	Fallback contract.Fallback
	Times    int
}

type kinds []pipeline.ErrorKind

// on starts a rule for failures of a stage.
func on(stage contract.Stage, failures ...kinds) Rule {
	r := Rule{Stage: stage}
	for _, k := range failures {
		r.Kinds = append(r.Kinds, k...)
	}
	return r
}

// by limits the rule to one kind of summarizer.
func (r Rule) by(s pipeline.SummarizerKind) Rule {
	r.Summarizer = s
	return r
}

func (r Rule) once(fallback contract.Fallback) Rule { return r.times(1, fallback) }

func (r Rule) times(n int, fallback contract.Fallback) Rule {
	r.Fallbacks = append(r.Fallbacks, Allowance{Fallback: fallback, Times: n})
	return r
}

// then ends the rule with the fallback that follows when the others are used up.
func (r Rule) then(fallback contract.Fallback) Rule { return r.times(0, fallback) }

func (r Rule) matches(stage contract.Stage, s pipeline.SummarizerKind, kind pipeline.ErrorKind) bool {
	return (r.Stage == "" || r.Stage == stage) && (r.Summarizer == "" || r.Summarizer == s) &&
		slices.Contains(r.Kinds, kind)
}

// taken counts the fallbacks that were taken.
type taken map[contract.Fallback]int

// next gives the fallback for a failure and counts it: the first one of the first matching rule that is not used up.
func (t taken) next(stage contract.Stage, s pipeline.SummarizerKind, kind pipeline.ErrorKind) contract.Fallback {
	for _, r := range Ladder {
		if !r.matches(stage, s, kind) {
			continue
		}
		for _, a := range r.Fallbacks {
			if a.Times == 0 || t[a.Fallback] < a.Times {
				t[a.Fallback]++
				return a.Fallback
			}
		}
	}
	return contract.Fail
}
