// Package service is what an agent does with a conversation: append, read the context, begin and end a reply,
// ask for a compaction, take one back. It evaluates the trigger wherever that can change, and asks for runs in
// the transaction of what fired them. The HTTP API, the command line and the MCP server are edges of it.
//
//	service.go       what a Service is made of
//	errors.go        its errors
//	conversations.go create, read, list, change
//	append.go        append, usage
//	usage.go         the vendors' usage objects
//	trigger.go       whether a compaction is due, and what holds it back
//	sync.go          a client's whole list
//	replies.go       the lease on one generation
//	compactions.go   by hand, waiting, cancelling, undo, markers of the agent's own
//	background.go    preparing ahead, applying between two replies
//	state.go         enrichments and pins
//	memory.go        what was compacted, notes, search
//	settings.go      what a tenant sets for all its conversations
//	context.go       what the model sees, with its figures
//	oneshot.go       a list in, a compacted list out, nothing kept
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

// Service acts on conversations. It is safe for concurrent use.
type Service struct {
	Store *store.Store
	// Temporal starts runs for callers that wait, and cancels runs; nil: runs start through the outbox alone.
	Temporal client.Client
	Config   config.Config
	Log      *slog.Logger
	// Metrics counts prepared summaries that take effect, nil: nothing does.
	Metrics *telemetry.Metrics
}

func (s *Service) launcher() launch.Launcher {
	return launch.Launcher{Store: s.Store, Client: s.Temporal, Config: s.Config}
}

// settings are those that count for a conversation. Of stored ones that do not fit the log tells.
func (s *Service) settings(c conversations.Conversation) config.Settings {
	settings, err := conversation.SettingsOf(s.Config.Settings, c)
	if err != nil {
		s.Log.Warn("stored settings are not usable and left out", "conversation", c.Ref.String(), "error", err)
	}
	return settings
}

// installation is what the configuration says for all conversations.
func (s *Service) installation() conversation.Installation {
	return conversation.InstallationOf(s.Config)
}

// load reads a conversation as it stands.
func (s *Service) load(ctx context.Context, ref store.ConversationRef) (conversation.View, error) {
	return conversation.Load(ctx, s.Store, ref, s.installation(), 0)
}
