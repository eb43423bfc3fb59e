import { describe, expect, test } from '@jest/globals'
import { chooseWorkers, readSettings, SettingError, takeAdminToken } from './settings.ts'

describe('readSettings', () => {
  test('prefers the environment over the file', () => {
    const file = { namespace: 'file', logging: { level: 'debug' } }
    expect(readSettings({ NAMESPACE: 'env', PROXY_LOG: 'warn' }, file)).toMatchObject({ namespace: 'env', logLevel: 'warn' })
    expect(readSettings({}, file)).toMatchObject({ namespace: 'file', logLevel: 'debug' })
  })

  test.each<[string, Record<string, string>, object | undefined]>([
    ['INSTANCE_IP and PEER_PORT', { INSTANCE_IP: 'fd00::1', PEER_PORT: '15023' }, { host: 'fd00::1', port: 15023 }],
    ['nothing without INSTANCE_IP', { PEER_PORT: '15023' }, undefined],
    ['the default port', { INSTANCE_IP: '10.0.0.1' }, { host: '10.0.0.1', port: 15_023 }],
    ['nothing without an IP address', { INSTANCE_IP: 'web-0' }, undefined],
    ['nothing with port 0', { INSTANCE_IP: '10.0.0.1', PEER_PORT: '0' }, undefined],
  ])('the address for other replicas is that of %s', (_, env, expected) => expect(readSettings(env).peer).toEqual(expected))

  test.each<[Record<string, string>, RegExp]>([
    [{ INSTANCE_IP: '10.0.0.1', PEER_PORT: '70000' }, /^PEER_PORT is "70000": give a port from 1 to 65535, or 0 for none$/],
    [{ INSTANCE_IP: 'web-0', PEER_PORT: '15023' }, /^INSTANCE_IP is "web-0": give an IP address/],
  ])('%j has no address for other replicas', (env, message) => expect(() => readSettings(env)).toThrow(message))

  test.each([
    ['60', 55_000],
    ['11', 6_000],
    ['10', 9_000],
    ['1', 1_000],
    ['0', 1_000],
  ])('for a grace period of %s s, the maximum drain time is %d ms', (seconds, ms) =>
    expect(readSettings({ TERMINATION_GRACE_PERIOD_SECONDS: seconds }).maxDrainMs).toBe(ms),
  )

  test.each<[string, Record<string, string>, number | undefined, number]>([
    ['that of auto by default', {}, undefined, chooseWorkers()],
    ['that of the file', {}, 3, 3],
    ['that of the environment before that of the file', { WORKERS: '2' }, 3, 2],
    ['that of auto before that of the file', { WORKERS: 'auto' }, 3, chooseWorkers()],
  ])('the number of workers is %s', (_, env, file, expected) => {
    expect(readSettings(env, file === undefined ? {} : { workers: file }).workers).toBe(expected)
  })

  const gib = 1024 ** 3
  test.each<[string, number, boolean, number, number]>([
    ['the CPU limit', 16, true, 0, 16],
    ['the cores without a CPU limit', 4, false, 0, 4],
    ['8 on a machine with many cores and no CPU limit', 64, false, 0, 8],
    ['64 with a CPU limit above it', 96, true, 0, 64],
    ['1 with a memory limit of 128 MiB', 4, true, gib / 8, 1],
    ['2 with a memory limit of 256 MiB', 4, true, gib / 4, 2],
    ['1 with a memory limit below the memory of a worker', 4, true, gib / 16, 1],
    ['the CPU limit with a memory limit above the memory of the machine', 4, true, 2 ** 62, 4],
  ])('the number of workers of auto is %s', (_, cpus, isLimited, constrained, expected) => {
    expect(chooseWorkers({ cpus, isLimited }, constrained, 128 * gib)).toBe(expected)
  })

  test.each([
    [{ WORKERS: '0' }, /WORKERS is "0": give a number from 1 to 64, or auto/],
    [{ WORKERS: '1.5' }, /WORKERS is "1.5": give a number/],
    [{ WORKERS: '65' }, /WORKERS is "65": give a number/],
    [{ CONNECTION_MIN_TERMINATION_DEADLINE: '10' }, /CONNECTION_MIN_TERMINATION_DEADLINE is "10": give a duration/],
    [{ TERMINATION_GRACE_PERIOD_SECONDS: '1.5' }, /whole seconds/],
    [{ XDS_ROOT_CA: '/nowhere/ca.crt' }, /^XDS_ROOT_CA is "\/nowhere\/ca\.crt": there is no such file; name a file of PEM certificates/],
    [{ XDS_ROOT_CA: import.meta.filename }, /^XDS_ROOT_CA is ".*": the file holds no certificate in PEM form/],
  ])('rejects %j with the name, the value and a fix', (env, message) => {
    expect(() => readSettings(env)).toThrow(SettingError)
    expect(() => readSettings(env)).toThrow(message)
  })
})

describe('ADMIN_TOKEN', () => {
  const token = '0f'.repeat(32)

  test('is taken from the environment of the process', () => {
    process.env['ADMIN_TOKEN'] = ` ${token}\n`
    expect(takeAdminToken(process.env)).toBe(token)
    expect(Object.keys(process.env)).not.toContain('ADMIN_TOKEN')
    expect(takeAdminToken(process.env)).toBeUndefined()
  })

  test.each(['', ' ', 'short', 'fifteen-letters', `${token} ${token}`, `${token}\u00e9`])('that is %j does not start, and is not in the message', (value) => {
    expect(() => takeAdminToken({ ADMIN_TOKEN: value })).toThrow(
      new SettingError('ADMIN_TOKEN is not 16 or more visible ASCII characters: make one with openssl rand -hex 32, or unset it to require no token'),
    )
  })
})
