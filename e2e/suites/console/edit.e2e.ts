import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { updateConsole } from '../../../images/console.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startBrowser } from '../browser/browser.ts'
import { DIST, openPage } from './fixture.ts'

const SECRET = 'sk-written-0123456789'
const OLD_KEY = 'key-of-alice-0123456789'

let directory: string
let file: string
let port: number
let dataplane: Dataplane
let browser: Awaited<ReturnType<typeof startBrowser>>
beforeAll(async () => {
  await updateConsole(DIST)
  directory = await mkdtemp(join(tmpdir(), 'edit-'))
  file = join(directory, 'gateway.yaml')
  ;[port = 0] = await findFreePorts(1)
  await writeFile(
    file,
    `# The gateway of the team
llm:
  port: ${port}
  models:
    gpt-4o: { openai: { apiKey: ${SECRET} } } # the big one
  policies:
    apiKeyAuthentication: { secretRef: { secret: default/clients } }
secrets:
  - key: default/clients
    type: opaque
    data:
      alice: '{"key":"${OLD_KEY}"}'
`,
  )
  dataplane = await startDataplane({ config: { file } })
  browser = await startBrowser()
})
afterAll(async () => {
  await browser.close()
  await dataplane.stop()
  await rm(directory, { recursive: true })
})

const base = (): string => `http://127.0.0.1:${dataplane.ports.admin}/`
const text = (): Promise<string> => readFile(file, 'utf8')
const listModels = async (key: string): Promise<number> =>
  (await fetch(`http://127.0.0.1:${port}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status

/** Shows the difference and writes it. */
async function write(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Show difference' }).click()
  await page.getByRole('region', { name: 'Difference' }).waitFor()
  await page.getByRole('button', { name: 'Write gateway.yaml' }).click()
  await page.getByText('gateway.yaml is written').waitFor()
}

describe('the console of a gateway with a config file', () => {
  test('sets a guard after its difference was shown, keeps comments and a copy, and shows no credential', async () => {
    const { page, problems } = await openPage(browser.context, base(), '#/edit')
    await page.getByRole('listitem').filter({ hasText: 'llm.models.gpt-4o.policies.ai.promptGuard' }).getByRole('button', { name: 'Set' }).click()
    const yaml = page.getByRole('textbox', { name: /^YAML of/ })
    await yaml.fill('request: [{ regex: { builtin: [Ssn] } }]')
    await page.getByRole('button', { name: 'Show difference' }).click()
    await page.getByText(/did you mean builtins/).waitFor()
    expect(await page.getByRole('button', { name: 'Write gateway.yaml' }).isDisabled()).toBe(true)
    await yaml.fill('request: [{ regex: { builtins: [Ssn] } }]')
    const before = await text()
    await write(page)
    expect(await page.content()).not.toContain(SECRET)
    expect(await text()).toMatch(/^# The gateway of the team\n[^]*promptGuard:\n +request: \[ \{ regex: \{ builtins: \[ Ssn \] \} \} \] # the big one\n/)
    const copies = (await readdir(directory)).filter((name) => name.endsWith('.bak'))
    expect(await Promise.all(copies.map((name) => readFile(join(directory, name), 'utf8')))).toEqual([before])
    expect(problems).toEqual([])
  })

  test('rotates a key: the new one is shown once and works, the old one does not', async () => {
    const { page, problems } = await openPage(browser.context, base(), '#/edit')
    expect(await listModels(OLD_KEY)).toBe(200)
    await page.getByRole('button', { name: 'Rotate alice' }).click()
    await write(page)
    const key = (await page.locator('.new-key code').textContent()) ?? ''
    expect(key).toMatch(/^pxk_[\w-]{43}$/)
    await waitUntil('the new key is accepted', async () => (await listModels(key)) === 200)
    expect([await listModels(OLD_KEY), (await text()).includes(key)]).toEqual([401, false])
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Rotate alice' }).waitFor()
    expect([(await page.content()).includes(key), problems]).toEqual([false, []])
  })

  test('writes nothing over a file that was changed meanwhile', async () => {
    const { page } = await openPage(browser.context, base(), '#/edit')
    await page.getByRole('button', { name: 'Revoke alice' }).click()
    await page.getByRole('button', { name: 'Show difference' }).click()
    await page.getByRole('region', { name: 'Difference' }).waitFor()
    const changed = `${await text()}# by hand\n`
    await writeFile(file, changed)
    await page.getByRole('button', { name: 'Write gateway.yaml' }).click()
    await page.getByRole('alert').getByText('gateway.yaml was changed since it was read').waitFor()
    expect(await text()).toBe(changed)
  })
})
