// Package service has the operations on conversations: append messages, read the context, open and end replies,
// request and undo compactions. It evaluates the trigger with every change that can fire it, and requests runs in the
// transaction of that change. The HTTP API, the command line and the MCP server are built on it.
//
//	service.go       the Service
//	names.go         the types of the packages below that callers name
//	errors.go        errors and their codes
//	conversations.go create, read, list, change
//	append.go        append messages with their usage
//	usage.go         read the vendors' usage objects
//	trigger.go       evaluate the trigger, and what holds an automatic run
//	sync.go          append what is new in a client's whole list
//	replies.go       open and end replies
//	compactions.go   manual compactions, cancel, undo, reported markers
//	wait.go          wait for a run, show its progress
//	background.go    apply prepared summaries between two replies
//	state.go         live state
//	memory.go        segments, notes, search
//	settings.go      a tenant's settings
//	keys.go          tenants and their API keys
//	context.go       the context, and the stored messages
//	built.go         the context as it was built, for files and for people
//	import.go        import transcripts and exports, delete content
//	find.go          find runs and conversations
//	audit.go         list and sum runs
//	verify.go        verify and export
//	heads.go         publish heads, and compare with them
//	sweep.go         verify or prune many conversations
//	replay.go        replay a run
//	batches.go       batches of replays
//	oneshot.go       compact a list of messages without keeping it
package service

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/client"

	"precis/internal/config"
	"precis/internal/conversation"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/telemetry"
)

// Service has the operations on conversations. It is safe for concurrent use.
type Service struct {
	Store *store.Store
	// Temporal starts runs for callers that wait, and cancels runs. If it is nil, only the outbox starts runs.
	Temporal client.Client
	Config   config.Config
	Log      *slog.Logger
	// Metrics counts prepared summaries that take effect; it may be nil.
	Metrics *telemetry.Metrics
}

func (s *Service) launcher() launch.Launcher {
	return launch.Launcher{Store: s.Store, Client: s.Temporal, Config: s.Config}
}

// settings returns the settings that apply to a conversation. Stored settings that are not valid are logged.
func (s *Service) settings(c conversations.Conversation) config.Settings {
	settings, err := conversation.SettingsOf(s.Config.Settings, c)
	if err != nil {
		s.Log.Warn("stored settings are not valid and were left out", "conversation", c.Ref.String(), "error", err)
	}
	return settings
}

// installation returns the configuration that applies to all conversations.
func (s *Service) installation() conversation.Installation {
	return conversation.InstallationOf(s.Config)
}

// load reads the current view of a conversation.
func (s *Service) load(ctx context.Context, ref store.ConversationRef) (conversation.View, error) {
	return conversation.Load(ctx, s.Store, ref, s.installation(), 0)
}
