package db

import (
	"crypto/sha256"
	"fmt"
)

// Packed is content made ready for the artifacts table, outside of any transaction.
type Packed struct {
	Sum  Hash
	Size int
	Zstd []byte
}

func (d *DB) Pack(data []byte) Packed {
	return Packed{Sum: sha256.Sum256(data), Size: len(data), Zstd: d.Compress(data)}
}

func (d *DB) Unpack(sum Hash, zstd []byte) ([]byte, error) {
	data, err := d.Decompress(zstd)
	if err != nil {
		return nil, Failed("read an artifact", fmt.Errorf("artifact %s is %w: %w", sum, ErrDamaged, err))
	}
	if Hash(sha256.Sum256(data)) != sum {
		return nil, Failed("read an artifact", fmt.Errorf("artifact %s is %w: its content has another hash", sum, ErrDamaged))
	}
	return data, nil
}

// Compress gives data as zstd.
func (d *DB) Compress(data []byte) []byte { return d.zip.EncodeAll(data, nil) }

// Decompress gives what compress was given, never nil.
func (d *DB) Decompress(zstd []byte) ([]byte, error) { return d.unzip.DecodeAll(zstd, []byte{}) }
