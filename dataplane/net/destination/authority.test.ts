import { expect, test } from '@jest/globals'
import { originAuthority } from '../../http/message.ts'
import { Destinations } from './destinations.ts'

const destinations = new Destinations(() => {
  throw new Error('no connection is opened')
})

test.each([
  ['a.example', 80, false, 'a.example'],
  ['a.example', 443, false, 'a.example:443'],
  ['a.example', 8080, false, 'a.example:8080'],
  ['a.example', 443, true, 'a.example'],
  ['a.example', 80, true, 'a.example:80'],
  ['a.example', 8443, true, 'a.example:8443'],
])('the Host of requests to %s, port %d, TLS %s, is %s, whatever names the destination', (host, port, isTls, expected) => {
  const tls = isTls ? { tls: {} } : undefined
  const part = { backend: 'ns/b', section: '', host, port, inline: tls, outer: undefined, isTlsDefault: false }
  const all = {
    url: destinations.forHost(host, port, isTls),
    part: destinations.forPart(part),
    'LLM provider': destinations.forPart({ ...part, section: 'llm', inline: undefined, isTlsDefault: isTls }),
    'other port': destinations.forOtherPort({ address: 'b.example:1' }, host, port, isTls),
    address: destinations.get({ address: `${host}:${port}` }, tls),
  }
  expect(Object.entries(all).map(([kind, destination]) => [kind, destination.authorityFor(true)])).toEqual(Object.keys(all).map((kind) => [kind, expected]))
})

test.each([
  ['127.0.0.1', 8080],
  ['::1', 8080],
])('requests to the address %s keep the Host of the client', (host, port) => {
  expect(destinations.forHost(host, port, false).authorityFor(true)).toBeUndefined()
})

test.each([
  ['::1', 80, false, '[::1]'],
  ['::1', 443, true, '[::1]'],
  ['::1', 8080, false, '[::1]:8080'],
  ['2001:db8::80', 80, false, '[2001:db8::80]'],
  ['10.0.0.1', 80, false, '10.0.0.1'],
])('IPv6 literals have brackets: %s, port %d', (host, port, isTls, expected) => {
  expect(originAuthority(host, port, isTls)).toBe(expected)
})
