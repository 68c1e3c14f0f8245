package connect

import (
	"context"
	"fmt"

	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/store/schema"
)

// appName is the name of the command line's connections in PostgreSQL.
const appName = "precis-cli"

// OpenStore opens the database. It migrates the schema of a local one; any other must be up to date already.
func (s *Session) OpenStore(ctx context.Context) error {
	if s.Stack != nil && s.Stack.DatabaseURL == s.Config.DatabaseURL &&
		s.Origins.Of("database_url").Source == config.SourceDefault {
		if err := schema.Migrate(ctx, s.Config.DatabaseURL, nil); err != nil {
			return err
		}
	} else if err := CheckSchema(ctx, s.Config.DatabaseURL); err != nil {
		return err
	}
	return s.openStore(ctx, store.Options{AppName: appName})
}

// OpenStoreOnce opens a database whose schema is up to date, and fails at once if it does not answer.
func (s *Session) OpenStoreOnce(ctx context.Context) error {
	return s.openStore(ctx, store.Options{AppName: appName, RetryFor: -1})
}

func (s *Session) openStore(ctx context.Context, o store.Options) error {
	var err error
	if o.SigningKey, o.VerifyKey, err = s.Config.Audit.Keys(); err != nil {
		return err
	}
	st, err := store.Open(ctx, s.Config.DatabaseURL, o)
	if err != nil {
		return err
	}
	s.store = st
	s.OnClose(func(context.Context) error { st.Close(); return nil })
	return nil
}

// ReadSchema returns the version of a database's schema, and the version that this build needs.
func ReadSchema(ctx context.Context, url string) (schema.Version, error) {
	return schema.Read(ctx, url)
}

// CheckSchema returns an error unless the schema of a database is the one that this build needs.
func CheckSchema(ctx context.Context, url string) error {
	v, err := schema.Read(ctx, url)
	switch {
	case err != nil:
		return err
	case v.Current < v.Latest:
		return fmt.Errorf("the database's schema is at version %d and this build needs %d: run `precis migrate`",
			v.Current, v.Latest)
	case v.Current > v.Latest:
		return fmt.Errorf("the database's schema is at version %d and this build knows %d: use a newer build of precis",
			v.Current, v.Latest)
	}
	return nil
}

// Migrate brings the schema of a database up to date and returns its version before and after. say is called with a
// line for each migration. The error is that of CheckSchema if the schema is newer than this build.
func Migrate(ctx context.Context, url string, say func(line string)) (before, after int64, err error) {
	v, err := schema.Read(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	if v.Current > v.Latest {
		return v.Current, v.Current, CheckSchema(ctx, url)
	}
	if err := schema.Migrate(ctx, url, say); err != nil {
		return v.Current, v.Current, err
	}
	now, err := schema.Read(ctx, url)
	return v.Current, now.Current, err
}
