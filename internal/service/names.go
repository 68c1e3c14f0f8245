package service

import (
	"precis/internal/audit"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/replays"
	"precis/internal/store/runs"
)

// The types that a Service takes and returns, for callers that import nothing below it.
type (
	// ConversationRef identifies a conversation of a tenant.
	ConversationRef = store.ConversationRef
	// RunRef identifies a run of a tenant.
	RunRef = store.RunRef
	// BatchRef identifies a batch of replays of a tenant.
	BatchRef = store.BatchRef
	// RunFilter selects runs.
	RunFilter = runs.Filter
	// ReplayFilter selects the runs that a batch replays.
	ReplayFilter = replays.Filter
	// ReplayRequest has the options of a replay.
	ReplayRequest = launch.ReplayRequest
	// BatchRequest requests a batch of replays.
	BatchRequest = launch.BatchRequest
	// Swept is the result of VerifyAll, also while it is running.
	Swept = audit.Swept
	// Head is the head of a conversation's seals, as it is published.
	Head = audit.Head
	// HeadsReport is the result of VerifyHeads.
	HeadsReport = audit.HeadsReport
	// PruneTotals is the result of Prune, also while it is running.
	PruneTotals = audit.PruneTotals
)

// DefaultTenant owns everything while no API keys are configured.
const DefaultTenant = store.DefaultTenant
