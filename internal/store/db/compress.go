package db

import (
	"crypto/sha256"
	"fmt"
)

// Packed is content that is ready for the artifacts table: hashed and compressed outside of any transaction.
type Packed struct {
	Sum  Hash
	Size int
	Zstd []byte
}

// Pack hashes and compresses data.
func (d *DB) Pack(data []byte) Packed {
	return Packed{Sum: sha256.Sum256(data), Size: len(data), Zstd: d.Compress(data)}
}

// Unpack returns the content of an artifact. Content that does not match its hash is ErrDamaged.
func (d *DB) Unpack(sum Hash, zstd []byte) ([]byte, error) {
	data, err := d.Decompress(zstd)
	if err != nil {
		return nil, Failed("read an artifact", fmt.Errorf("artifact %s is %w: %w", sum, ErrDamaged, err))
	}
	if Hash(sha256.Sum256(data)) != sum {
		return nil, Failed("read an artifact",
			fmt.Errorf("artifact %s is %w: its content has another hash", sum, ErrDamaged))
	}
	return data, nil
}

// Compress returns data as zstd.
func (d *DB) Compress(data []byte) []byte { return d.zip.EncodeAll(data, nil) }

// Decompress returns the data that Compress was called with, never nil.
func (d *DB) Decompress(zstd []byte) ([]byte, error) { return d.unzip.DecodeAll(zstd, []byte{}) }
