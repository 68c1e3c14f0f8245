package scenario

import "precis/internal/service"

// Service is the service on the system, as the HTTP API has it.
func (s *System) Service() *service.Service {
	return &service.Service{
		Store: s.Store, Temporal: s.Client, Config: s.Config, Log: s.Log,
		Metrics: s.Telemetry.Metrics(),
	}
}
