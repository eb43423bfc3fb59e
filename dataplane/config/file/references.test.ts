import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Policy, Route } from '#gen/config/types.ts'
import { loadConfigFile } from './file.ts'
import type { ConfigFileOptions } from './problem.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'references-'))
})
afterAll(() => rm(directory, { recursive: true }))

/** A route with a mirror to `mirror` and external authorization by `authorizer`. */
async function load(mirror: object, authorizer: object, options?: ConfigFileOptions): ReturnType<typeof loadConfigFile> {
  const path = join(directory, 'config.json')
  const route = {
    name: 'r',
    filters: { mirrors: [{ backend: mirror }] },
    policies: { extAuth: { backendRef: authorizer, http: {} } },
    backends: [{ host: '127.0.0.1:1' }],
  }
  const file = {
    binds: [{ port: 8080, listeners: [{ routes: [route] }] }],
    backends: [{ name: 'shadow', host: '127.0.0.1:2' }],
    services: [{ key: 'ns/authz', ports: [{ port: 80, endpoints: [] }] }],
  }
  await writeFile(path, JSON.stringify(file, undefined, 1))
  return loadConfigFile(path, options)
}

async function resolve(mirror: object, authorizer: object, options?: ConfigFileOptions): Promise<unknown> {
  const { messages } = await load(mirror, authorizer, options)
  const find = (kind: string): unknown => messages.find((one) => one.kind === kind)?.message
  return [(find('route') as Route).filters?.mirrors?.[0]?.backend, (find('policy') as Policy).traffic?.extAuth?.backendRef]
}

test('policies and filters refer to backends by their names, or by keys and addresses', async () => {
  expect(await resolve({ backend: 'shadow' }, { backend: 'shadow' })).toEqual([{ backend: 'default/shadow' }, { backend: 'default/shadow' }])
  expect(await resolve({ backend: 'default/shadow' }, { service: 'ns/authz', port: 80 })).toEqual([
    { backend: 'default/shadow' },
    { service: 'ns/authz', port: 80 },
  ])
  expect(await resolve({ address: '127.0.0.1:3' }, { invalid: 'BACKEND_NOT_FOUND' })).toEqual([{ address: '127.0.0.1:3' }, { invalid: 'BACKEND_NOT_FOUND' }])
})

test('references to nothing are warnings with their places', async () => {
  const { warnings } = await load({ backend: 'shadwo' }, { service: 'ns/other', port: 80 })
  expect(warnings).toEqual([
    expect.stringMatching(/mirrors\[0\]\.backend\.backend: shadwo is not the name of one of backends; requests to it fail \[PX3010\]$/),
    expect.stringMatching(/extAuth\.backendRef\.service: ns\/other is not the key of one of services; requests to it fail \[PX3010\]$/),
  ])
})

test('references of a file beside a config stream may lead to its backends', async () => {
  const options = { placeholders: 'literal' } as const
  expect(await resolve({ backend: 'shadow' }, { backend: 'apps/authz' }, options)).toEqual([{ backend: 'default/shadow' }, { backend: 'apps/authz' }])
})

test('models of a backend have the problems of a status as warnings', async () => {
  const path = join(directory, 'models.json')
  const models = [
    { name: 'm', rules: [{ to: [{ backendRef: { backend: 'shadow' } }] }, { to: [{ backendRef: { address: '127.0.0.1:1' } }] }] },
    { name: 'm', to: [{ backendRef: { backend: 'nothing' }, weight: 0 }] },
  ]
  await writeFile(
    path,
    JSON.stringify({
      backends: [
        { name: 'shadow', host: '127.0.0.1:2' },
        { name: 'llm', ai: { models } },
      ],
    }),
  )
  const { warnings, messages } = await loadConfigFile(path)
  expect(JSON.stringify(messages)).toContain('"backendRef":{"backend":"default/shadow"}')
  expect(warnings).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/models\[0\]\.rules\[1\]: no request reaches the rule, because rule 0 matches all/),
      expect.stringMatching(/models\[1\]\.name: is that of model 0, which is used/),
      expect.stringMatching(/models\[1\]\.to: no target has a weight above 0/),
      expect.stringMatching(/backendRef\.backend: nothing is not the name of one of backends/),
    ]),
  )
})
