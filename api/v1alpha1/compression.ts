import { choice, integer, object, set, string, type Definitions } from '../schema.ts'

export const compressionDefinitions: Definitions = {
  Compression: object(
    'Compresses responses for clients that accept it. Responses that have a `content-encoding`, partial ones, and those with `cache-control: no-transform` stay as they are, and so does gRPC.',
    {
      algorithms: set(
        choice(['zstd', 'br', 'gzip'], 'A content coding.'),
        'Content codings, in the order of preference between those that the client prefers equally. Default: zstd, br, gzip.',
        1,
        3,
      ),
      contentTypes: set(
        string('Media type without parameters, or `type/*`. `text/event-stream` is only selected by its full name.', {
          minLength: 3,
          maxLength: 128,
          pattern: '^[A-Za-z0-9!#$&^_.+-]+/(\\*|[A-Za-z0-9!#$&^_.+-]+)$',
        }),
        'Types of responses that are compressed. Default: HTML, CSS, JavaScript, JSON, XML, SVG and plain text.',
        1,
        50,
      ),
      minContentLength: integer('Bytes of the shortest body that is compressed; a body of unknown length always is. Default: 1024.', 0, 4294967295),
    },
  ),
  Decompression: object(
    'Decompresses bodies of requests (gzip, br, zstd, deflate) for upstreams that do not. An unknown `content-encoding` gets 415, content that does not match it 400.',
    {
      maxSize: integer('Most bytes of a decompressed body; a longer one gets 413. Default: 10 MiB.', 1, 4294967295),
    },
  ),
}
