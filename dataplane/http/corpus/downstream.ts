import type { DownstreamCase } from './case.ts'

const crlf = '\r\n'
const request = (line: string, ...fields: string[]): string => [line, ...fields, '', ''].join(crlf)
/** A GET with these field lines. */
const get = (...fields: string[]): string => request('GET / HTTP/1.1', 'Host: a', ...fields)
/** A request that must be read as body bytes. */
const hidden = request('GET /evil HTTP/1.1', 'Host: evil')
/** A POST with these field lines and five bytes. */
const post = (...fields: string[]): string => `${request('POST / HTTP/1.1', 'Host: a', ...fields)}hello`
const chunked = (body: string): string => request('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked') + body
const target = (text: string, ...fields: string[]): string => request(`GET ${text} HTTP/1.1`, ...(fields.length > 0 ? fields : ['Host: a']))

const refused = (status: number, cases: Readonly<Record<string, string>>): DownstreamCase[] =>
  Object.entries(cases).map(([name, bytes]) => ({ name, bytes, refused: status }))
const served = (cases: Readonly<Record<string, readonly [bytes: string, ...served: string[]]>>): DownstreamCase[] =>
  Object.entries(cases).map(([name, [bytes, ...requests]]) => ({ name, bytes, served: requests }))

const lengths: DownstreamCase[] = [
  ...refused(400, {
    'content-length before transfer-encoding': post('Content-Length: 5', 'Transfer-Encoding: chunked'),
    'transfer-encoding before content-length': post('Transfer-Encoding: chunked', 'Content-Length: 5'),
    'two different content-lengths': post('Content-Length: 5', 'Content-Length: 6'),
    'two equal content-lengths': post('Content-Length: 5', 'Content-Length: 5'),
    'content-length as a list': post('Content-Length: 5, 5'),
    'content-length with a plus sign': post('Content-Length: +5'),
    'content-length with a minus sign': post('Content-Length: -5'),
    'hexadecimal content-length': post('Content-Length: 0x5'),
    'fractional content-length': post('Content-Length: 5.0'),
    'content-length with an inner space': post('Content-Length: 5 5'),
    'empty content-length': post('Content-Length:'),
    'content-length with a parameter': post('Content-Length: 5;a'),
    'content-length beyond exact integers': post('Content-Length: 18446744073709551621'),
    'content-length in full-width digits': post('Content-Length: \xef\xbc\x95'),
  }),
  ...served({
    'content-length with leading zeros': [post('Content-Length: 005'), 'POST a / hello'],
    'content-length among tabs and spaces': [post('Content-Length: \t5 \t'), 'POST a / hello'],
    'content-length 0': [get('Content-Length: 0'), 'GET a / '],
    'GET with a body': [`${get('Content-Length: 5')}hello`, 'GET a / hello'],
    'a request hidden in a body': [request('POST / HTTP/1.1', 'Host: a', `Content-Length: ${hidden.length}`) + hidden, `POST a / ${hidden}`],
    'an unknown header that looks like transfer-encoding': [post('Transfer_Encoding: chunked', 'Content-Length: 5'), 'POST a / hello'],
  }),
]

const codings: DownstreamCase[] = [
  ...refused(400, {
    'chunked twice in one field': chunked('').replace('chunked', 'chunked, chunked'),
    'chunked in two fields': request('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'),
    'chunked and then identity': request('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity'),
    'transfer-encoding identity': post('Transfer-Encoding: identity'),
    'transfer-encoding without chunked': post('Transfer-Encoding: gzip'),
    'chunked that is not the last coding': post('Transfer-Encoding: chunked, gzip'),
    'a coding that ends in chunked': post('Transfer-Encoding: xchunked'),
    'chunked with a parameter': post('Transfer-Encoding: chunked;q=1'),
    'chunked in quotes': post('Transfer-Encoding: "chunked"'),
    'chunked after a vertical tab': post('Transfer-Encoding: \x0bchunked'),
    'chunked on a continuation line': post('Transfer-Encoding:', ' chunked'),
    'empty transfer-encoding': post('Transfer-Encoding:'),
    'transfer-encoding in HTTP/1.0': `${request('POST / HTTP/1.0', 'Host: a', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    'space between transfer-encoding and colon': post('Transfer-Encoding : chunked', 'Content-Length: 5'),
  }),
  ...refused(501, { 'an unknown coding before chunked': chunked('0\r\n\r\n').replace('chunked', 'gzip, chunked') }),
  ...served({
    'chunked in capitals': [chunked('5\r\nhello\r\n0\r\n\r\n').replace('chunked', 'CHUNKED'), 'POST a / hello'],
    'chunked after a tab': [chunked('5\r\nhello\r\n0\r\n\r\n').replace(' chunked', '\tchunked'), 'POST a / hello'],
  }),
]

const chunks: DownstreamCase[] = [
  ...refused(400, {
    'chunk size with 0x': chunked('0x5\r\nhello\r\n0\r\n\r\n'),
    'chunk size with a plus sign': chunked('+5\r\nhello\r\n0\r\n\r\n'),
    'negative chunk size': chunked('-1\r\nhello\r\n0\r\n\r\n'),
    'space after the chunk size': chunked('5 \r\nhello\r\n0\r\n\r\n'),
    'space before the chunk size': chunked(' 5\r\nhello\r\n0\r\n\r\n'),
    'chunk size that is not hexadecimal': chunked('g\r\nhello\r\n0\r\n\r\n'),
    'missing chunk size': chunked('\r\nhello\r\n0\r\n\r\n'),
    'chunk size that overflows': chunked('10000000000000005\r\nhello\r\n0\r\n\r\n'),
    'chunk size ended by a bare LF': chunked('5\nhello\r\n0\r\n\r\n'),
    'chunk size ended by a bare CR': chunked('5\rhello\r\n0\r\n\r\n'),
    'chunk data that is longer than its size': chunked('4\r\nhello\r\n0\r\n\r\n'),
    'chunk data ended by a bare LF': chunked('5\r\nhello\n0\r\n\r\n'),
    'chunk data ended by two other bytes': chunked('5\r\nhelloXX0\r\n\r\n'),
    'bare LF in a chunk extension': chunked('5;a\nb\r\nhello\r\n0\r\n\r\n'),
    'bare CR in a chunk extension': chunked('5;a\rb\r\nhello\r\n0\r\n\r\n'),
    'unbalanced quote in a chunk extension': chunked('5;a="b\r\nhello\r\n0\r\n\r\n'),
    'quoted CRLF in a chunk extension': chunked('5;a="\r\nhello\r\n0\r\n\r\n"\r\nhello\r\n0\r\n\r\n'),
    'empty chunk extension': chunked('5;\r\nhello\r\n0\r\n\r\n'),
    'NUL in a chunk extension': chunked('5;a\0b\r\nhello\r\n0\r\n\r\n'),
    'chunk extension of 300 bytes': chunked(`5;${'a'.repeat(300)}\r\nhello\r\n0\r\n\r\n`),
    'chunk extensions of 20 KB in all': chunked(`${`1;${'a'.repeat(200)}\r\nx\r\n`.repeat(100)}0\r\n\r\n`),
    'trailer without a colon': chunked('0\r\nbroken\r\n\r\n'),
    'trailer ended by a bare LF': chunked('0\r\nA: b\n\r\n'),
    'trailer with a continuation line': chunked('0\r\nA: b\r\n c\r\n\r\n'),
    'bare LF after the last chunk': chunked('0\r\n\n'),
    'bytes instead of the final CRLF': chunked('0\r\n\rX'),
  }),
  ...refused(431, {
    'trailers of 20 KB': chunked(`0\r\nA: ${'b'.repeat(20_000)}\r\n\r\n`),
    'too many trailers': chunked(`0\r\n${'A: b\r\n'.repeat(101)}\r\n`),
  }),
  ...served({
    'chunk sizes in capitals with leading zeros': [chunked('00A\r\nhellohello\r\n0\r\n\r\n'), 'POST a / hellohello'],
    'chunk extensions': [chunked('5;a=b;c="d e"\r\nhello\r\n0;last\r\n\r\n'), 'POST a / hello'],
    trailers: [chunked('5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n'), 'POST a / hello x-sum: 1'],
    'trailers that must not be trailers': [
      chunked('5\r\nhello\r\n0\r\nContent-Length: 9\r\nHost: b\r\nAuthorization: c\r\nTransfer-Encoding: chunked\r\nX-Sum: 1\r\n\r\n'),
      'POST a / hello x-sum: 1',
    ],
    'a request hidden in chunk data': [chunked(`${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`), `POST a / ${hidden}`],
    'an empty chunked body': [chunked('0\r\n\r\n'), 'POST a / '],
  }),
]

const heads: DownstreamCase[] = [
  ...refused(400, {
    'continuation line': get('A: b', ' c'),
    'continuation line with a tab': get('A: b', '\tc'),
    'continuation line after the request line': 'GET / HTTP/1.1\r\n Host: a\r\n\r\n',
    'bare CR in a value': get('A: b\rc'),
    'bare CR that hides a field line': get('A: b\rXContent-Length: 40'),
    'bare LF in a value': get('A: b\nTransfer-Encoding: chunked'),
    'lines ended by bare LF': 'GET / HTTP/1.1\nHost: a\n\n',
    'empty line of a bare LF': 'GET / HTTP/1.1\r\nHost: a\r\n\n',
    'bare LF after the request line': 'GET / HTTP/1.1\nHost: a\r\n\r\n',
    'CR CR LF': get('A: b\r'),
    'NUL in a value': get('A: b\0c'),
    'NUL in a name': get('A\0b: c'),
    'NUL in the target': target('/\0'),
    'DEL in a value': get('A: b\x7f'),
    'escape in a value': get('A: \x1b[31m'),
    'field line without a colon': get('broken'),
    'empty field name': get(': b'),
    'space before the colon': get('A : b'),
    'tab before the colon': get('A\t: b'),
    'parenthesis in a name': get('A(b): c'),
    'UTF-8 in a name': get('\xc3\xa9: b'),
    'space before the method': ` ${get()}`,
    'tabs in the request line': 'GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n',
    'two spaces in the request line': 'GET  / HTTP/1.1\r\nHost: a\r\n\r\n',
    'space in the target': target('/a b'),
    'request line broken within the target': 'GET /\r\nA:b HTTP/1.1\r\nHost: a\r\n\r\n',
    'space after the version': request('GET / HTTP/1.1 ', 'Host: a'),
    'no version': request('GET /', 'Host: a'),
    'only a method': request('GET', 'Host: a'),
    'version in lower case': request('GET / http/1.1', 'Host: a'),
    'version with a leading zero': request('GET / HTTP/01.1', 'Host: a'),
    'version of another protocol': request('GET / RTSP/1.0', 'Host: a'),
    'invalid character in the method': request('GE(T / HTTP/1.1', 'Host: a'),
    'two empty lines before the request': `\r\n\r\n${get()}`,
    'a TLS hello': `\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n\r\n`,
  }),
  ...refused(505, {
    'HTTP/1.2': request('GET / HTTP/1.2', 'Host: a'),
    'HTTP/2.0': request('GET / HTTP/2.0', 'Host: a'),
    'the HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  }),
  ...refused(431, {
    '101 field lines': get(...Array.from({ length: 100 }, (_, i) => `A${i}: b`)),
    'a head of 20 KB': get(`A: ${'b'.repeat(20_000)}`),
    'a head of 20 KB without an end': `GET / HTTP/1.1\r\nA: ${'b'.repeat(20_000)}`,
  }),
  ...refused(414, {
    'a target of 9 KB': target(`/${'a'.repeat(9000)}`),
    'a target of 20 KB': target(`/${'a'.repeat(20_000)}`),
  }),
  ...refused(417, { 'unknown expectation': `${request('POST / HTTP/1.1', 'Host: a', 'Expect: 200-ok', 'Content-Length: 5')}hello` }),
  ...served({
    '100 field lines': [get(...Array.from({ length: 99 }, (_, i) => `A${i}: b`)), 'GET a / '],
    'an empty value': [get('A:'), 'GET a / '],
    'Latin-1 in a value': [get('A: caf\xe9'), 'GET a / '],
    'one empty line before the request': [`\r\n${get()}`, 'GET a / '],
    'an unknown method': [request('BREW /pot HTTP/1.1', 'Host: a'), 'BREW a /pot '],
    'a method in lower case is another method': [request('get / HTTP/1.1', 'Host: a'), 'get a / '],
    'three pipelined requests': [get() + post('Content-Length: 5') + target('/c'), 'GET a / ', 'POST a / hello', 'GET a /c '],
  }),
]

const targets: DownstreamCase[] = [
  ...refused(400, {
    'missing Host': request('GET / HTTP/1.1'),
    'two Hosts': request('GET / HTTP/1.1', 'Host: a', 'Host: b'),
    'two equal Hosts': request('GET / HTTP/1.1', 'Host: a', 'Host: a'),
    'empty Host': request('GET / HTTP/1.1', 'Host:'),
    'space in Host': request('GET / HTTP/1.1', 'Host: a b'),
    'comma in Host': request('GET / HTTP/1.1', 'Host: a,b'),
    'user in Host': request('GET / HTTP/1.1', 'Host: u@a'),
    'path in Host': request('GET / HTTP/1.1', 'Host: a/b'),
    'port out of range': request('GET / HTTP/1.1', 'Host: a:65536'),
    'port that is no number': request('GET / HTTP/1.1', 'Host: a:x'),
    'absolute form without Host': target('http://a/', 'A: b'),
    'absolute form with two Hosts': target('http://a/', 'Host: a', 'Host: b'),
    'absolute form of the other scheme': target('https://a/'),
    'absolute form of an unknown scheme': target('ftp://a/'),
    'absolute form with a user': target('http://u@a/'),
    'absolute form without an authority': target('http:///x'),
    'absolute form with a fragment': target('http://a/#b'),
    'GET *': target('*'),
    'authority form without CONNECT': target('a:80'),
    'relative target': target('a/b'),
    fragment: target('/a#b'),
    'raw byte above 0x7f in the target': target('/\xff'),
    'CONNECT with a path': request('CONNECT / HTTP/1.1', 'Host: a'),
    'CONNECT without a port': request('CONNECT a HTTP/1.1', 'Host: a'),
    'CONNECT with a body': `${request('CONNECT a:80 HTTP/1.1', 'Host: a', 'Content-Length: 5')}hello`,
  }),
  ...refused(405, { CONNECT: request('CONNECT a:80 HTTP/1.1', 'Host: a:80') }),
  ...served({
    'absolute form': [target('http://a/b?c'), 'GET a /b?c '],
    'absolute form wins over Host': [target('http://b:81/'), 'GET b:81 / '],
    'absolute form without a path': [target('http://a?c'), 'GET a /?c '],
    'absolute form in capitals': [target('HTTP://a/'), 'GET a / '],
    'OPTIONS *': [request('OPTIONS * HTTP/1.1', 'Host: a'), 'OPTIONS a * '],
    'OPTIONS in absolute form': [request('OPTIONS http://a HTTP/1.1', 'Host: a'), 'OPTIONS a * '],
    'two slashes': [target('//evil/x'), 'GET a //evil/x '],
    'IPv6 Host': [target('/', 'Host: [::1]:80'), 'GET [::1]:80 / '],
    'escapes and braces in the target': [target('/%00/{a}|"b"?c=[d]'), 'GET a /%00/{a}|"b"?c=[d] '],
  }),
]

const connections: DownstreamCase[] = [
  { name: 'connection: close', bytes: get('Connection: close'), served: ['GET a / '], isClosed: true },
  { name: 'close among other options', bytes: get('Connection: a, Close'), served: ['GET a / '], isClosed: true },
  { name: 'HTTP/1.0', bytes: request('GET / HTTP/1.0', 'Host: a'), served: ['GET a / '], isClosed: true },
  { name: 'HTTP/1.0 without Host', bytes: request('GET / HTTP/1.0'), served: ['GET  / '], isClosed: true },
  { name: 'HTTP/1.0 with keep-alive and close', bytes: request('GET / HTTP/1.0', 'Connection: keep-alive, close'), served: ['GET  / '], isClosed: true },
  { name: 'HTTP/1.0 with keep-alive', bytes: request('GET / HTTP/1.0', 'Host: a', 'Connection: Keep-Alive'), served: ['GET a / '] },
  { name: 'connection names the framing', bytes: post('Content-Length: 5', 'Connection: content-length'), served: ['POST a / hello'] },
  { name: 'connection names Host', bytes: get('Connection: host'), served: ['GET a / '] },
  {
    name: 'upgrade to h2c',
    bytes: get('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA'),
    served: ['GET a / '],
  },
  { name: 'upgrade with a body', bytes: post('Connection: upgrade', 'Upgrade: websocket', 'Content-Length: 5'), served: ['POST a / hello'] },
]

export const downstreamCases: readonly DownstreamCase[] = [...lengths, ...codings, ...chunks, ...heads, ...targets, ...connections]
