import { describe, expect, test } from '@jest/globals'
import { matchesHostname } from '#api/routing/hostnames.ts'
import { checkMisdirected, createListenerTable, selectListener } from './listeners.ts'
import { HostTable } from './hostnames.ts'

describe('matchesHostname and HostTable', () => {
  test.each([
    ['a.com', 'a.com', true],
    ['a.com', 'b.a.com', false],
    ['*.a.com', 'b.a.com', true],
    ['*.a.com', 'c.b.a.com', true],
    ['*.a.com', 'a.com', false],
    ['*.a.com', 'ba.com', false],
    ['*.a.com', '.a.com', false],
    [undefined, 'a.com', true],
    ['', '', true],
  ])('hostname %s matches host %s: %j', (hostname, host, expected) => {
    expect(matchesHostname(hostname, host)).toBe(expected)
    const table = new HostTable<boolean>()
    table.set(hostname, true)
    expect(table.lookup(host) ?? false).toBe(expected)
  })
})

describe('HostTable', () => {
  const table = new HostTable<string>()
  for (const name of ['', '*.com', '*.a.com', 'b.a.com']) table.set(name, name)

  test.each([
    ['b.a.com', ['b.a.com', '*.a.com', '*.com', '']],
    ['c.a.com', ['*.a.com', '*.com', '']],
    ['a.com', ['*.com', '']],
    ['org', ['']],
    ['', ['']],
  ])('find visits the hostnames of %j from the most to the least specific: %j', (host, expected) => {
    const asked: string[] = []
    table.find(host, (value) => void asked.push(value), undefined)
    expect(asked).toEqual(expected)
  })

  test('looks up a host of 60,000 dots without quadratic time', () => {
    const startedAt = performance.now()
    for (let i = 0; i < 1000; i++) table.lookup('.'.repeat(60_000))
    expect(performance.now() - startedAt).toBeLessThan(60_000)
  })
})

describe('listener selection', () => {
  const listeners = [{ hostname: 'a.com' }, { hostname: '*.a.com' }, { hostname: 'b.a.com' }, { hostname: 'a.com' }]
  const table = createListenerTable(listeners)
  const [exact, wildcard, deep] = listeners

  test.each([
    ['a.com', exact],
    ['A.COM:8443', exact],
    ['c.a.com', wildcard],
    ['b.a.com', deep],
    ['c.b.a.com', wildcard],
    ['c.com', undefined],
    ['', undefined],
  ])('selects the most specific listener for the host %j', (host, expected) => {
    expect(selectListener(table, host)).toBe(expected)
  })

  test('selects the first of two listeners with the same hostname', () => {
    expect(selectListener(table, 'a.com')).toBe(exact)
  })

  test('selects the listener without hostname for all other hosts', () => {
    const any = { hostname: undefined }
    expect(selectListener(createListenerTable([...listeners, any]), 'c.com')).toBe(any)
  })

  test.each([
    ['the host of the SNI', 'a.com', undefined],
    ['the host of the SNI with a port', 'a.com:443', undefined],
    ['the host of another listener of the port', 'x.a.com', 'MISDIRECTED'],
    ['the host of no listener', 'c.com', 'LISTENER_NOT_FOUND'],
  ])('on a TLS connection with SNI a.com, a request for %s (%s) gets the error %s', (_, authority, expected) => {
    expect(checkMisdirected(table, exact, authority)).toBe(expected)
  })

  test('a request for the host of a more specific listener is misdirected on a connection of the wildcard listener', () => {
    expect(checkMisdirected(table, wildcard, 'b.a.com')).toBe('MISDIRECTED')
    expect(checkMisdirected(table, wildcard, 'c.a.com')).toBeUndefined()
  })
})
