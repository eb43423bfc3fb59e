import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { loopbackAddresses } from '../short/listen.ts'
import { makeCertificate } from '../../../e2e/harness/certificates.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { createConfigStore, type ConfigMessage } from '../store.ts'
import { followConfigFile, type FollowConfigFileOptions } from './follow.ts'
import { readConfigFile } from './read.ts'

let directory: string
const closers: (() => void)[] = []
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'followed-file-'))
})
afterEach(() => {
  for (const close of closers.splice(0)) close()
})
afterAll(() => rm(directory, { recursive: true }))

async function write(text: string, name: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

describe('a followed config file', () => {
  const file = (port: number, ...listeners: string[]): string => `binds:\n- port: ${port}\n  listeners: [${listeners.join(', ')}]\n`

  async function followed(path: string, options: Partial<FollowConfigFileOptions> = {}) {
    const store = createConfigStore()
    const errors: string[] = []
    const first = await readConfigFile(path, options)
    const { close, check } = await followConfigFile({ path, store, first, onError: (error) => errors.push(error.message), ...options })
    closers.push(close)
    return { store, errors, check, ports: () => [...store.snapshot().binds.values()].map(({ port }) => port) }
  }
  test('applies an edit, keeps the last valid version after an invalid edit, and reports that once', async () => {
    const path = await write(file(1), 'followed.yaml')
    const { ports, errors } = await followed(path)
    expect(ports()).toEqual([1])
    await writeFile(path, file(2))
    await until(() => ports()[0] === 2)
    await writeFile(path, file(0))
    await until(() => errors.length > 0)
    expect(errors).toEqual([`${path}:2:3: binds[0].port: must be >= 1, is 0 [PX3007]`])
    expect(ports()).toEqual([2])
    await writeFile(path, file(3))
    await until(() => ports()[0] === 3)
    expect(errors).toHaveLength(1)
  })

  test('is reloaded after an edit even if it is larger than a command line can be', async () => {
    const listeners = (suffix: string): string[] =>
      Array.from({ length: 3000 }, (_, index) => `{ name: listener-${index}-of-many-${suffix}, hostname: host-${index}.example.com }`)
    const path = await write(file(1, ...listeners('before')), 'large.yaml')
    const { store, errors } = await followed(path)
    await writeFile(path, file(1, ...listeners('after')))
    await until(() => store.snapshot().listeners.has('default/config.listener-2999-of-many-after'))
    expect([store.snapshot().listeners.size, errors]).toEqual([3000, []])
  })

  test('keeps unchanged messages as the same objects after an edit, and removes deleted ones', async () => {
    const path = await write(file(1, '{ name: a }', '{ name: b }'), 'identity.yaml')
    const { store, ports } = await followed(path)
    const before = store.snapshot().listeners.get('default/config.a')
    await writeFile(path, file(1, '{ name: a }', '{ name: c }'))
    await until(() => store.snapshot().listeners.has('default/config.c'))
    expect(store.snapshot().listeners.get('default/config.a')).toBe(before)
    expect([...store.snapshot().listeners.keys()]).toEqual(['default/config.a', 'default/config.c'])
    expect(ports()).toEqual([1])
  })

  test('is reloaded after a replacement by rename or by symbolic link', async () => {
    const path = await write(file(1), 'renamed.yaml')
    const byRename = await followed(path)
    await rename(await write(file(2), 'renamed.yaml.new'), path)
    await until(() => byRename.ports()[0] === 2)

    for (const version of ['v1', 'v2']) await mkdir(join(directory, 'volume', version), { recursive: true })
    await write(file(3), 'volume/v1/config.yaml')
    await write(file(4), 'volume/v2/config.yaml')
    await symlink('v1', join(directory, 'volume', 'data'))
    await symlink('data/config.yaml', join(directory, 'volume', 'config.yaml'))
    const byLink = await followed(join(directory, 'volume', 'config.yaml'))
    expect(byLink.ports()).toEqual([3])
    await symlink('v2', join(directory, 'volume', 'data.new'))
    await rename(join(directory, 'volume', 'data.new'), join(directory, 'volume', 'data'))
    await until(() => byLink.ports()[0] === 4)
  })

  test('applies a renewed certificate, and keeps the old one while certificate and key do not match', async () => {
    const [certificate, other] = [makeCertificate({ name: 'a.example' }), makeCertificate({ name: 'b.example' })]
    await write(certificate.certificate, 'renewed.crt')
    await write(certificate.privateKey, 'renewed.key')
    const path = await write(file(1, '{ name: a, tls: { cert: renewed.crt, key: renewed.key } }'), 'renewed.yaml')
    const { store, errors } = await followed(path)
    const served = (): string | undefined => store.snapshot().secrets.get('default/config.a.tls')?.certificate
    await write(other.certificate, 'renewed.crt')
    await until(() => errors.length > 0)
    expect(served()).toBe(certificate.certificate)
    await write(other.privateKey, 'renewed.key')
    await until(() => served() === other.certificate)
  })

  test('keeps the last valid version while the file is missing, and is reloaded when it is back', async () => {
    const path = await write(file(1), 'gone.yaml')
    const { ports, errors } = await followed(path, { pollMs: 20 })
    await unlink(path)
    await until(() => errors.length > 0)
    expect([errors, ports()]).toEqual([[`${path}: no such file [PX3001]`], [1]])
    await writeFile(path, file(2))
    await until(() => ports()[0] === 2)
  })

  test('is read again on request, after an edit that the system does not tell', async () => {
    const path = join(directory, 'link.yaml')
    await mkdir(join(directory, 'elsewhere'))
    const target = await write(file(1), join('elsewhere', 'target.yaml'))
    await symlink(target, path)
    const { ports, check } = await followed(path, { pollMs: 1e9 })
    await writeFile(target, file(2))
    await until(() => {
      check()
      return ports()[0] === 2
    })
  })

  test('adds its binds to those of the stream, whose messages override its own', async () => {
    const path = await write(file(8080, '{ name: own }'), 'both.yaml')
    const { store, ports } = await followed(path, { namespace: 'ns', gateway: 'gw' })
    const bind = (port: number, addresses: string[]): ConfigMessage => ({ kind: 'bind', message: { key: `${port}/ns/gw`, port, addresses } })
    store.apply('stream', { upserts: [bind(80, []), bind(8080, ['10.0.0.1'])], removals: [] })
    expect(ports().toSorted((a, b) => a - b)).toEqual([80, 8080])
    expect(store.snapshot().binds.get('8080/ns/gw')?.addresses).toEqual(['10.0.0.1'])
    store.apply('stream', { upserts: [], removals: [{ kind: 'bind', key: '8080/ns/gw' }] })
    expect(store.snapshot().binds.get('8080/ns/gw')).toEqual({ key: '8080/ns/gw', port: 8080, addresses: loopbackAddresses() })
    expect(store.snapshot().listeners.has('ns/gw.own')).toBe(true)
  })
})
