package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// awsConfigDeadline limits the reading of the configuration of AWS: files and variables only. Credentials from
// elsewhere are fetched with the first request.
const awsConfigDeadline = 10 * time.Second

// newBedrock speaks the Messages API through Bedrock's InvokeModel and InvokeModelWithResponseStream: the official SDK
// translates requests and binary streams. A vendor's key is sent as Bedrock's API key. Without one, requests are signed
// with the usual credentials of AWS: variables, profile, single sign-on, the machine's role.
func newBedrock(v Vendor, base string) (*anthropicProtocol, error) {
	cfg, err := awsConfig(v, bedrockRegion(base))
	if err != nil {
		return nil, fmt.Errorf("vendor %q: %w", v.Name, err)
	}
	inner := v
	inner.APIKey = "" // the key is for Bedrock, not for Anthropic
	return newAnthropic(inner, base, bedrock.WithConfig(cfg), option.WithBaseURL(base)), nil
}

// awsConfig returns how requests are authenticated. region is that of the address, "" when it has none.
func awsConfig(v Vendor, region string) (aws.Config, error) {
	if v.APIKey != "" {
		return aws.Config{
			Region: region, BearerAuthTokenProvider: bedrock.NewStaticBearerTokenProvider(v.APIKey),
			AuthSchemePreference: []string{"httpBearerAuth"},
		}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), awsConfigDeadline)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return cfg, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if region != "" {
		cfg.Region = region
	}
	if cfg.Region == "" {
		return cfg, errors.New("no AWS region is known: set AWS_REGION, or a base_url such as " +
			"https://bedrock-runtime.us-east-1.amazonaws.com")
	}
	cfg.Credentials = namedCredentials{cfg.Credentials}
	return cfg, nil
}

// bedrockRegion returns the region in an address of Bedrock, "" for any other address.
func bedrockRegion(base string) string {
	rest, ok := strings.CutPrefix(hostOf(base), "bedrock-runtime.")
	if !ok {
		rest, ok = strings.CutPrefix(hostOf(base), "bedrock-runtime-fips.")
	}
	region, of, found := strings.Cut(rest, ".")
	if !ok || !found || !strings.HasPrefix(of, "amazonaws.com") {
		return ""
	}
	return region
}

// errNoCredentials is why a request could not be signed.
var errNoCredentials = errors.New("no AWS credentials were found: set AWS_ACCESS_KEY_ID and " +
	"AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the vendor's api_key")

// namedCredentials says what is missing, where the SDK of AWS only lists its attempts.
type namedCredentials struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (c namedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if c.CredentialsProvider == nil {
		return aws.Credentials{}, errNoCredentials
	}
	got, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return got, fmt.Errorf("%w (%w)", errNoCredentials, err)
	}
	return got, err
}

// bedrockModel returns Anthropic's own name for a name of Bedrock, such as
// us.anthropic.claude-sonnet-4-5-20250929-v1:0; false for any other name.
func bedrockModel(model string) (string, bool) {
	_, name, ok := strings.Cut(model, "anthropic.claude-")
	if !ok {
		return "", false
	}
	return "claude-" + name, true
}
