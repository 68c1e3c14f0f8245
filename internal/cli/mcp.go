package cli

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"precis/internal/mcp"
	"precis/internal/service"
	"precis/internal/telemetry"
)

func (a *app) mcpCommand() *cobra.Command {
	var conversation string
	cmd := &cobra.Command{
		Use:     "mcp",
		GroupID: groupStack,
		Short:   "Offer a conversation's memory to an agent over MCP",
		Long: `Serves the Model Context Protocol on standard input and output, for a client that starts this command.
Its tools search the messages, read what a compaction replaced by a summary, and leave notes. It uses the
configured database, or else the local stack. ` + "`precis serve`" + ` and ` + "`precis up`" + ` serve the same over
HTTP at /mcp.`,
		Example: `  precis mcp --conversation build-42
  precis mcp                           every tool call names its conversation`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.mcp(ctx, s, conversation) })
		},
	}
	cmd.Flags().StringVar(&conversation, "conversation", "",
		"`id` of the conversation that the tools are about (default: every tool call names its own)")
	return cmd
}

func (a *app) mcp(ctx context.Context, s *session, conversation string) error {
	if conversation != "" {
		if _, err := a.service(s).FindConversation(ctx,
			service.ConversationRef{Tenant: a.tenant, ID: conversation}); err != nil {
			return noConversation(err, conversation)
		}
	}
	log := telemetry.Logger(a.err, s.Config.Log)
	return mcp.Serve(ctx, mcp.Options{
		Service: s.Service(log, nil),
		Tenant:  a.tenant, Conversation: conversation, Log: log,
	}, &sdk.StdioTransport{})
}
