/** A case of h2spec that fails. */
export interface KnownFailure {
  /** `<package>: <title>`, as in the report of h2spec. */
  readonly name: string
  /** Transport on which it fails; undefined: both. */
  readonly only?: 'plaintext' | 'TLS'
  /** Why it fails, and why that is acceptable. */
  readonly reason: string
}

const ignoresClosedStreams =
  'nghttp2 ignores frames on a stream that it has closed and forgotten, because they may have been sent before the peer saw the end of the stream'

/** The cases that fail. They are decided by nghttp2, the HTTP/2 library of Node, except where the reason says otherwise. */
export const knownFailures: readonly KnownFailure[] = [
  {
    name: 'http2/3.5: Sends invalid connection preface',
    only: 'plaintext',
    reason: 'the port serves HTTP/1.1 too: bytes that are not the preface of HTTP/2 get a 400 of HTTP/1.1 before the connection is closed',
  },
  { name: 'http2/5.1: closed: Sends a DATA frame after sending RST_STREAM frame', reason: ignoresClosedStreams },
  { name: 'http2/5.1: closed: Sends a HEADERS frame after sending RST_STREAM frame', reason: ignoresClosedStreams },
  { name: 'http2/5.1: closed: Sends a DATA frame', reason: ignoresClosedStreams },
  { name: 'http2/5.1: closed: Sends a HEADERS frame', reason: ignoresClosedStreams },
  {
    name: 'http2/5.1.1: Sends stream identifier that is numerically smaller than previous',
    reason: 'nghttp2 treats a lower identifier as that of a closed stream and ignores its frames',
  },
  {
    name: 'http2/5.3.1: Sends PRIORITY frame that depend on itself',
    reason: 'RFC 9113 §5.3.2 deprecates stream priorities, and nghttp2 ignores PRIORITY frames',
  },
  {
    name: 'http2/6.3: Sends a PRIORITY frame with 0x0 stream identifier',
    reason: 'RFC 9113 §5.3.2 deprecates stream priorities, and nghttp2 ignores PRIORITY frames',
  },
  {
    name: 'http2/6.7: Sends a PING frame with ACK',
    reason: 'Node closes a connection with an acknowledgement that it did not request, which is no response to it either',
  },
  {
    name: 'http2/6.9.1: Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream',
    reason: 'nghttp2 closes the connection instead of the stream, which RFC 9113 §5.4.2 permits',
  },
]
