import type { UpstreamCase } from './case.ts'

const crlf = '\r\n'
const response = (...lines: string[]): string => [...lines, '', ''].join(crlf)
/** A 200 with these field lines, then `body`. */
const ok = (body: string, ...fields: string[]): string => response('HTTP/1.1 200 OK', ...fields) + body
const chunked = (body: string): string => ok(body, 'Transfer-Encoding: chunked')
const sized = ok('hello', 'Content-Length: 5')

const fails = (failure: NonNullable<UpstreamCase['fails']>, cases: Readonly<Record<string, string>>, more: Partial<UpstreamCase> = {}): UpstreamCase[] =>
  Object.entries(cases).map(([name, bytes]) => ({ name, bytes, fails: failure, ...more }))
const delivers = (expected: string, cases: Readonly<Record<string, string>>, more: Partial<UpstreamCase> = {}): UpstreamCase[] =>
  Object.entries(cases).map(([name, bytes]) => ({ name, bytes, response: expected, ...more }))
/** The connection is reused for the probe. */
const kept = { isReused: true } as const

const framings: UpstreamCase[] = [
  ...delivers('200 hello', { 'content-length': sized, chunked: chunked('2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n') }, kept),
  ...delivers(
    '200 hello',
    { 'chunk extensions': chunked('5;a=b\r\nhello\r\n0\r\n\r\n'), 'chunked in capitals': chunked('5\r\nhello\r\n0\r\n\r\n').replace('chunked', 'Chunked') },
    kept,
  ),
  ...delivers('200 hello x-sum: 1', { trailers: chunked('5\r\nhello\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\n\r\n') }, kept),
  ...delivers('200 hello', { 'body that ends with the connection': ok('hello'), 'HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\nhello' }, { closes: true }),
  ...delivers('200 hello', {
    'connection: close': ok('hello', 'Content-Length: 5', 'Connection: close'),
    'HTTP/1.0 with a length': sized.replace('/1.1', '/1.0'),
  }),
  ...delivers('200 hello', { 'HTTP/1.0 with keep-alive': ok('hello', 'Content-Length: 5', 'Connection: keep-alive').replace('/1.1', '/1.0') }, kept),
  ...delivers('200 ', { 'content-length 0': ok('', 'Content-Length: 0'), 'empty chunked body': chunked('0\r\n\r\n') }, kept),
  ...fails('protocol', {
    'content-length together with chunked': ok('5\r\nhello\r\n0\r\n\r\n', 'Content-Length: 5', 'Transfer-Encoding: chunked'),
    'two different content-lengths': ok('hello', 'Content-Length: 5', 'Content-Length: 6'),
    'two equal content-lengths': ok('hello', 'Content-Length: 5', 'Content-Length: 5'),
    'content-length as a list': ok('hello', 'Content-Length: 5, 5'),
    'signed content-length': ok('hello', 'Content-Length: +5'),
    'hexadecimal content-length': ok('hello', 'Content-Length: 0x5'),
    'content-length beyond exact integers': ok('hello', 'Content-Length: 99999999999999999999'),
    'a coding before chunked': ok('0\r\n\r\n', 'Transfer-Encoding: gzip, chunked'),
    'chunked twice': ok('0\r\n\r\n', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'),
    'a coding without chunked': ok('hello', 'Transfer-Encoding: gzip'),
    'chunked in HTTP/1.0': chunked('0\r\n\r\n').replace('/1.1', '/1.0'),
  }),
]

const heads: UpstreamCase[] = [
  ...delivers('200 hello', { 'no reason phrase': sized.replace(' OK', ' '), 'no space after the status': sized.replace(' OK', '') }, kept),
  ...delivers(
    '200 hello',
    { 'Latin-1 in the reason phrase': sized.replace('OK', 'd\xe9j\xe0 vu'), 'Latin-1 in a value': sized.replace('Content', 'A: \xe9\r\nContent') },
    kept,
  ),
  ...fails('protocol', {
    'continuation line': ok('hello', 'A: b', ' c', 'Content-Length: 5'),
    'lines ended by bare LF': sized.replaceAll('\r\n', '\n'),
    'one bare LF': sized.replace('OK\r\n', 'OK\n'),
    'bare CR in a value': ok('hello', 'A: b\rc', 'Content-Length: 5'),
    'bare CR that hides a field line': ok('hello', 'A: b\rXTransfer-Encoding: chunked', 'Content-Length: 5'),
    'NUL in a value': ok('hello', 'A: b\0c', 'Content-Length: 5'),
    'field line without a colon': ok('hello', 'broken', 'Content-Length: 5'),
    'space before the colon': ok('hello', 'Content-Length : 5'),
    'invalid character in a name': ok('hello', 'A b: c', 'Content-Length: 5'),
    'HTTP/2.0': sized.replace('/1.1', '/2.0'),
    'HTTP/1.2': sized.replace('/1.1', '/1.2'),
    'another protocol': sized.replace('HTTP/1.1', 'ICY'),
    'an SSH banner': 'SSH-2.0-OpenSSH_9.2\r\n',
    'status of two digits': sized.replace('200', '99'),
    'status of four digits': sized.replace('200', '2000'),
    'status beyond 599': sized.replace('200', '600'),
    'status that is no number': sized.replace('200', '2x0'),
    'two spaces before the status': sized.replace(' 200', '  200'),
    'space before the version': ` ${sized}`,
    'an empty line before the head': `\r\n${sized}`,
    'a head of 70 KB': ok('hello', 'Content-Length: 5', `A: ${'b'.repeat(70_000)}`),
    'a head of 70 KB without an end': `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(70_000)}`,
    '257 field lines': ok('hello', 'Content-Length: 5', ...Array.from({ length: 256 }, (_, i) => `A${i}: b`)),
    'a hundred interim responses': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100) + sized,
  }),
]

const bodies: UpstreamCase[] = [
  ...delivers(
    '200 hello',
    { 'close before content-length is reached': ok('hello', 'Content-Length: 9'), 'close within chunked': chunked('5\r\nhello\r\n') },
    { closes: true, fails: 'reset' },
  ),
  ...delivers('200 ', { 'close within a chunk size': chunked('5') }, { closes: true, fails: 'reset' }),
  ...delivers(
    '200 ',
    { 'chunk size that is not hexadecimal': chunked('x\r\nhello\r\n0\r\n\r\n'), 'chunk size with 0x': chunked('0x5\r\nhello') },
    { fails: 'protocol' },
  ),
  ...delivers(
    '200 hello',
    { 'chunk that is longer than its size': chunked('5\r\nhelloX\r\n0\r\n\r\n'), 'chunk ended by a bare LF': chunked('5\r\nhello\n0\r\n\r\n') },
    { fails: 'protocol' },
  ),
  ...delivers('200 hello', { 'trailer without a colon': chunked('5\r\nhello\r\n0\r\nbroken\r\n\r\n') }, { fails: 'protocol' }),
  ...fails('reset', { 'close before any byte': '', 'close within the head': 'HTTP/1.1 200 OK\r\nConte' }, { closes: true }),
]

/** Responses with extra bytes after them, which must never become the response to another request. */
const smuggled = ok('evil!', 'Content-Length: 5')
const surplus: UpstreamCase[] = [
  ...delivers('200 hello', {
    'a second response': sized + smuggled,
    'bytes beyond content-length': `${sized}X`,
    'bytes after the last chunk': chunked(`5\r\nhello\r\n0\r\n\r\n${smuggled}`),
  }),
  { name: 'a second response, later', bytes: sized, late: smuggled, response: '200 hello' },
  { name: 'a stray byte, later', bytes: sized, late: '\0', response: '200 hello' },
  ...delivers('204 ', {
    '204 with a body': response('HTTP/1.1 204 No Content', 'Content-Length: 5') + 'hello',
    '204 with a chunked body': response('HTTP/1.1 204 No Content', 'Transfer-Encoding: chunked'),
  }),
  { name: '204 that announces a body and sends it later', bytes: response('HTTP/1.1 204 No Content', 'Content-Length: 40'), late: smuggled, response: '204 ' },
  ...delivers(
    '204 ',
    { '204': response('HTTP/1.1 204 No Content'), '204 with content-length 0': response('HTTP/1.1 204 No Content', 'Content-Length: 0') },
    kept,
  ),
  ...delivers('304 ', { '304 with the length of its representation': response('HTTP/1.1 304 Not Modified', 'Content-Length: 5') }, kept),
  ...delivers('304 ', { '304 with a body': `${response('HTTP/1.1 304 Not Modified', 'Content-Length: 5')}hello` }),
  ...delivers('200 ', { 'answer to HEAD with a length': ok('', 'Content-Length: 5'), 'answer to HEAD with chunked': chunked('') }, { method: 'HEAD', ...kept }),
  ...delivers('200 ', { 'answer to HEAD with a body': sized }, { method: 'HEAD' }),
  ...delivers(
    '200 hello',
    { '100 before the response': `HTTP/1.1 100 Continue\r\n\r\n${sized}`, '103 with fields': `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${sized}` },
    kept,
  ),
  ...fails('upgrade', { '101 that nobody asked for': response('HTTP/1.1 101 Switching Protocols', 'Connection: upgrade', 'Upgrade: websocket') }),
  ...fails('protocol', { '100 with obs-fold': `HTTP/1.1 100 Continue\r\nA: b\r\n c\r\n\r\n${sized}` }),
]

export const upstreamCases: readonly UpstreamCase[] = [...framings, ...heads, ...bodies, ...surplus]
