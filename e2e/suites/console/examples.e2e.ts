import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { BrowserContext } from 'playwright-core'
import { updateConsole } from '../../../images/console.ts'
import { prepareExample, startExample, type RunningExample } from '../../harness/example/example-run.ts'
import { startOperator } from '../../harness/program/operator.ts'
import { startBrowser } from '../browser/browser.ts'
import { DIST, openPage } from './fixture.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples')
const DATAPLANE = join(import.meta.dirname, '../../../dataplane/main.ts')
const INTERVAL_MS = 300

/** The letter of each page, and a selector of what appears with live data. */
const pages = {
  o: '.graph-panel .numbers',
  r: '.routes .route-head',
  q: '.tail tbody tr',
  l: 'main h1',
  m: 'main h1',
  e: '.completion button, .completion .muted',
  c: 'main .panel .badge',
} as const

let context: BrowserContext
let root: string
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  await updateConsole(DIST)
  root = await mkdtemp(join(tmpdir(), 'console-examples-'))
  const browser = await startBrowser()
  closing.unshift(() => browser.close())
  context = browser.context
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
  await rm(root, { recursive: true, force: true })
})

describe.each<[string, Partial<Record<keyof typeof pages, string>>]>([
  ['quickstart', {}],
  ['llm-providers', { l: 'table.llm tbody tr' }],
  ['mcp-federation', { m: 'main form button.primary' }],
])('the console with the example %s', (name, own) => {
  let running: RunningExample
  let isOver = false
  let traffic: Promise<void> | undefined
  let stopOperator: (() => Promise<unknown>) | undefined

  beforeAll(async () => {
    const prepared = await prepareExample(name, join(EXAMPLES, name), join(root, name))
    const operator = await startOperator({ directory: join(root, name) })
    stopOperator = () => operator.stop()
    running = await startExample(prepared, operator, DATAPLANE)
    const send = async (): Promise<void> => {
      while (!isOver) {
        for (const command of prepared.example.commands ?? []) await running.runCommand(command)
        await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
      }
    }
    traffic = send()
  }, 240_000)
  afterAll(async () => {
    isOver = true
    await traffic
    await running?.stop()
    await stopOperator?.()
  })

  test('shows live data on all seven pages without a reload', async () => {
    const { page, problems } = await openPage(context, `http://127.0.0.1:${running.dataplane.ports.admin}/`, '#/overview')
    for (const [key, selector] of Object.entries({ ...pages, ...own })) {
      await page.locator('nav').first().waitFor()
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.locator(selector).first().waitFor({ state: 'attached' })
    }
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    await page
      .locator('.graph-panel .numbers', { hasText: /[1-9].*\/s/ })
      .first()
      .waitFor({ state: 'attached' })
    expect(problems).toEqual([])
    await page.close()
  })
})
