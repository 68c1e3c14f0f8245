package config

// placeKeys document where things are: the local stack, the database, Temporal, the HTTP API.
var placeKeys = []Key{
	{Name: "dir", Unit: "path", Flag: "dir", Effect: "Folder of the local stack: its private database, the " +
		"programs it built, its logs. Empty: `.precis` in the checkout that you stand in, else in your home " +
		"folder. Not used when both `database_url` and `temporal.address` are given."},
	{
		Name: "database_url", Flag: "database-url",
		Effect: "PostgreSQL, as `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `host=… dbname=…`. Empty: the " +
			"local stack's own. The password is masked when the configuration is shown.",
	},

	{
		Name: "temporal.address", Unit: "host:port", Flag: "temporal-address",
		Effect: "Temporal's frontend. Empty: the local stack's own server.",
	},
	{Name: "temporal.namespace", Flag: "temporal-namespace", Effect: "Temporal namespace that workflows run in."},
	{Name: "temporal.api_key", Secret: true, Effect: "Bearer token, as Temporal Cloud takes it. Switches TLS on."},
	{
		Name: "temporal.tls.enabled",
		Effect: "Encrypt the connection to Temporal. Switched on automatically when an API " +
			"key, a certificate, an authority or a server name is given.",
	},
	{Name: "temporal.tls.cert_file", Unit: "path", Effect: "Client certificate for mutual TLS, in PEM."},
	{Name: "temporal.tls.cert_data", Effect: "The same as text in place of a file."},
	{Name: "temporal.tls.key_file", Unit: "path", Effect: "Key of the client certificate, in PEM."},
	{Name: "temporal.tls.key_data", Secret: true, Effect: "The same as text in place of a file."},
	{
		Name: "temporal.tls.ca_file", Unit: "path",
		Effect: "Authority that the server's certificate is checked against, in PEM. Without one: the system's.",
	},
	{Name: "temporal.tls.ca_data", Effect: "The same as text in place of a file."},
	{
		Name:   "temporal.tls.server_name",
		Effect: "Name that the server's certificate must be for. Empty: the host of `temporal.address`.",
	},
	{
		Name:   "temporal.tls.insecure_skip_verify",
		Effect: "Take any certificate. For tests only: anybody on the network path can read and change everything.",
	},

	{Name: "http.addr", Unit: "host:port", Effect: "Where the HTTP API and the page listen. On any address " +
		"but loopback the server starts only when API keys exist (`precis keys create`)."},
	{
		Name: "http.max_body_bytes", Unit: "bytes",
		Effect: "Largest body of a request. A larger one is refused as `too_large`.",
	},
	{
		Name: "http.max_total_body_bytes", Unit: "bytes",
		Effect: "Largest size of the bodies of all requests in progress together; one tenant gets half of it. A body " +
			"that finds no room within two seconds is refused as `unavailable`. A request needs up to six times its " +
			"body in memory. Never less than `http.max_body_bytes`.",
	},
	{
		Name: "http.request_timeout_seconds", Unit: "seconds",
		Effect: "Most time that the server spends on a request, besides the time that the request asks to wait " +
			"for a run.",
	},
	{
		Name: "http.requests_per_second", Unit: "requests per second",
		Effect: "Rate that one tenant may sustain. Beyond it the answer is `rate_limited`. 0: no limit.",
	},
	{
		Name: "http.burst", Unit: "requests",
		Effect: "Number of requests above that rate that a tenant may send at once.",
	},
	{
		Name: "http.max_concurrent_requests", Unit: "requests",
		Effect: "Maximum number of concurrent requests of one tenant, event streams not counted. 0: no limit.",
	},
	{
		Name: "http.max_event_streams", Unit: "streams",
		Effect: "Maximum number of open event streams of one tenant. 0: no limit.",
	},
	{
		Name: "http.max_wait_seconds", Unit: "seconds",
		Effect: "Most time that a request waits for a run, whatever its `wait_seconds`. It then returns the run in " +
			"progress.",
	},
	{
		Name: "http.allowed_hosts", Unit: "names, comma separated",
		Effect: "Names, beside `localhost` and loopback addresses, to which the paths that need no key (`/metrics`, " +
			"`/docs`, `/healthz`…) are served while `http.addr` is on loopback: those that a proxy on this machine " +
			"passes on. Other names are refused, so that no web page can read them.",
	},
	{
		Name: "http.shutdown_seconds", Unit: "seconds",
		Effect: "How long a stopping server waits for requests to finish.",
	},
}
