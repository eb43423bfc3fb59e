import { describe, expect, test } from '@jest/globals'
import { parseAddress, readSettings, SettingError } from './settings.ts'

describe('readSettings', () => {
  test('defaults are those of the management ports', () => {
    const settings = readSettings({})
    expect([settings.adminAddr, settings.statsAddr, settings.readinessAddr]).toEqual([
      { host: '127.0.0.1', port: 15_000 },
      { host: '0.0.0.0', port: 15_020 },
      { host: '0.0.0.0', port: 15_021 },
    ])
  })

  test('the environment wins over the file', () => {
    const file = { adminAddr: '127.0.0.1:1', logging: { level: 'debug' } }
    expect(readSettings({ ADMIN_ADDR: '127.0.0.1:2', PROXY_LOG: 'warn' }, file)).toMatchObject({ adminAddr: { port: 2 }, logLevel: 'warn' })
    expect(readSettings({}, file)).toMatchObject({ adminAddr: { port: 1 }, logLevel: 'debug' })
  })

  test.each([
    ['60', 55_000],
    ['11', 6_000],
    ['10', 9_000],
    ['1', 1_000],
    ['0', 1_000],
  ])('a grace period of %s s drains for %d ms', (seconds, ms) => expect(readSettings({ TERMINATION_GRACE_PERIOD_SECONDS: seconds }).maxDrainMs).toBe(ms))

  test.each([
    [{ ADMIN_ADDR: 'nonsense' }, /ADMIN_ADDR is "nonsense": give host:port/],
    [{ STATS_ADDR: '1.2.3.4:99999' }, /STATS_ADDR/],
    [{ CONNECTION_MIN_TERMINATION_DEADLINE: '10' }, /CONNECTION_MIN_TERMINATION_DEADLINE is "10": give a duration/],
    [{ TERMINATION_GRACE_PERIOD_SECONDS: '1.5' }, /whole seconds/],
  ])('%j is refused with its name, its value and the fix', (env, message) => {
    expect(() => readSettings(env)).toThrow(SettingError)
    expect(() => readSettings(env)).toThrow(message)
  })

  test.each([
    ['[::1]:80', { host: '::1', port: 80 }],
    [':8080', { host: '0.0.0.0', port: 8080 }],
  ])('%s is an address', (raw, address) => expect(parseAddress('X', raw)).toEqual(address))
})
