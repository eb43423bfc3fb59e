import { describe, expect, test } from '@jest/globals'
import { checkMisdirected, createListenerTable, selectListener } from './listeners.ts'
import { effectiveHostnames, HostTable, intersectHostnames, matchesHostname } from './hostnames.ts'

describe('a hostname matches', () => {
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
  ])('%s and %s: %j', (hostname, host, expected) => {
    expect(matchesHostname(hostname, host)).toBe(expected)
    const table = new HostTable<boolean>()
    table.set(hostname, true)
    expect(table.lookup(host) ?? false).toBe(expected)
  })
})

describe('the intersection', () => {
  test.each([
    [undefined, undefined, ''],
    ['a.com', undefined, 'a.com'],
    ['*.a.com', undefined, '*.a.com'],
    ['a.com', 'a.com', 'a.com'],
    ['a.com', 'b.com', undefined],
    ['b.a.com', '*.a.com', 'b.a.com'],
    ['a.com', '*.a.com', undefined],
    ['*.a.com', '*.b.a.com', '*.b.a.com'],
    ['*.a.com', '*.a.com', '*.a.com'],
    ['*.a.com', '*.ba.com', undefined],
  ])('of %s and %s is %s', (a, b, expected) => {
    expect(intersectHostnames(a, b)).toBe(expected)
    expect(intersectHostnames(b, a)).toBe(expected)
  })

  test.each([
    [undefined, '*.a.com', ['*.a.com']],
    [[], undefined, ['']],
    [['B.a.com', 'c.com', '*.a.com'], '*.a.com', ['b.a.com', '*.a.com']],
    [['c.com'], '*.a.com', []],
  ])('of the route %j with the listener %s is %j', (route, listener, expected) => {
    expect(effectiveHostnames(route, listener)).toEqual(expected)
  })
})

describe('a host table', () => {
  const table = new HostTable<string>()
  for (const name of ['', '*.com', '*.a.com', 'b.a.com']) table.set(name, name)

  test.each([
    ['b.a.com', ['b.a.com', '*.a.com', '*.com', '']],
    ['c.a.com', ['*.a.com', '*.com', '']],
    ['a.com', ['*.com', '']],
    ['org', ['']],
    ['', ['']],
  ])('asks for %s from the most to the least specific: %j', (host, expected) => {
    const asked: string[] = []
    table.find(host, (value) => void asked.push(value), undefined)
    expect(asked).toEqual(expected)
  })

  test('a host of dots costs little', () => {
    const startedAt = performance.now()
    for (let i = 0; i < 1000; i++) table.lookup('.'.repeat(60_000))
    expect(performance.now() - startedAt).toBeLessThan(60_000)
  })
})

describe('listeners', () => {
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
  ])('%s goes to the most specific one', (host, expected) => {
    expect(selectListener(table, host)).toBe(expected)
  })

  test('the first of two with one hostname wins', () => {
    expect(selectListener(table, 'a.com')).toBe(exact)
  })

  test('one without hostname takes the rest', () => {
    const any = { hostname: undefined }
    expect(selectListener(createListenerTable([...listeners, any]), 'c.com')).toBe(any)
  })

  test.each([
    ['the Host that SNI named', 'a.com', undefined],
    ['its port does not matter', 'a.com:443', undefined],
    ['another listener of the port', 'x.a.com', 'MISDIRECTED'],
    ['no listener', 'c.com', 'LISTENER_NOT_FOUND'],
  ])('a TLS connection of a.com and %s: %s gives %s', (_, authority, expected) => {
    expect(checkMisdirected(table, exact, authority)).toBe(expected)
  })

  test('a more specific listener owns its Host even on a connection that its wildcard would cover', () => {
    expect(checkMisdirected(table, wildcard, 'b.a.com')).toBe('MISDIRECTED')
    expect(checkMisdirected(table, wildcard, 'c.a.com')).toBeUndefined()
  })
})
