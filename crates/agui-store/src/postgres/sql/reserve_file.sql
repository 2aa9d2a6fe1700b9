-- Reserves space for a file, which is hidden until its bytes are stored.
INSERT INTO agui_files (owner, id, digest, media_type, name, bytes, width, height, created_at, unused_since, object_key, stored)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, FALSE)
RETURNING number
