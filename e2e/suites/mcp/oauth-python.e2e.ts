import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { startAuth0, type Auth0 } from '../mcp-oauth/auth0.ts'
import { startOAuthEnvironment, type OAuthEnvironment } from '../mcp-oauth/environment.ts'

const run = promisify(execFile)
const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const PYTHON = file('../../../.tools/mcp-python/bin/python')

let auth0: Auth0
let environment: OAuthEnvironment

beforeAll(async () => {
  auth0 = await startAuth0()
  const authentication = {
    provider: 'IdpKind1',
    issuer: auth0.issuer,
    audiences: ['shop'],
    jwks: { jwksPath: '/.well-known/jwks.json', backendRef: { group: 'proxy.dev', kind: 'ProxyBackend', name: 'idp' } },
  }
  environment = await startOAuthEnvironment(() => [{ name: 'auth0', policies: { mcp: { authentication } } }], [{ name: 'idp', port: auth0.port }])
}, 240_000)
afterAll(async () => {
  await environment?.stop()
  await auth0?.close()
})

test('a client of the Python SDK logs in with IdpKind1 and calls a tool', async () => {
  const url = `${environment.origin}/auth0`
  let output = ''
  // The token is rejected until the operator has the keys.
  await waitUntil(
    'a login',
    async () => {
      const { stdout } = await run(PYTHON, [file('./login.py'), url]).catch(({ stderr }: { stderr: string }) => ({ stdout: stderr }))
      output = stdout.trim()
      return output.startsWith('search in documents')
    },
    120_000,
  ).catch(() => undefined)
  expect(output).toBe('search in documents: "x"')
  expect(auth0.requestLog).toContain('GET /authorize')
})
