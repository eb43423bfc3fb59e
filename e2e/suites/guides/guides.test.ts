import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { bundleDataplane } from '../../../images/bundle.ts'
import { prepareExample, startExample, type PreparedExample, type RunningExample } from '../../harness/example/example-run.ts'
import { startOperator, type Operator } from '../../harness/program/operator.ts'
import { describeEvent } from '../../harness/standalone-text.ts'
import { listFiles, readText, root } from '../docs/tree.ts'
import { checkYaml } from './check-yaml.ts'
import { findUnansweredCommands, linePattern, matchesOutput, readCommands, readSections, type Section } from './page.ts'

const pages = listFiles('docs/guide/*.md')
const sections = pages.flatMap((page) => readSections(page, readText(page)))
const titleOf = ({ page, heading }: Section): string => `${basename(page)}, ${heading}`
const runs = sections.filter((section) => section.run !== undefined).map((section, index) => ({ title: titleOf(section), name: `guide-${index}`, section }))

/** `proxyctl` of the checkout, for the data plane of the section. */
const PROXYCTL = `proxyctl() {
  case $1 in explain|trace|config|log) set -- "$@" --admin 127.0.0.1:15000 ;; esac
  '${process.execPath}' operator/proxyctl/main.ts "$@"
}`

test('every page has sections, and their titles are unique on the page', () => {
  expect(pages.length).toBeGreaterThan(20)
  expect(sections.map(titleOf).filter((title, index, all) => all.indexOf(title) !== index)).toEqual([])
})

test('every command of a page has an output', () => {
  expect(sections.flatMap(findUnansweredCommands)).toEqual([])
})

test.each(pages)('every YAML block of %s is valid', async (page) => {
  // The run of a section with problems expects them.
  const blocks = sections.filter((section) => section.page === page && !section.hasProblems).flatMap((section) => section.blocks)
  const problems: string[] = []
  for (const { language, text, line, notChecked } of blocks) {
    if (!['yaml', 'yml'].includes(language) || notChecked !== undefined) continue
    for (const problem of await checkYaml(text)) problems.push(`${page}:${line}: ${problem}`)
  }
  expect(problems).toEqual([])
})

describe('run against a gateway,', () => {
  // One operator serves all Gateways; each section has its own namespace and data plane.
  let operator: Operator
  let directory: string
  let bundle: string
  const prepared = new Map<string, PreparedExample>()

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'guides-'))
    bundle = await bundleDataplane(join(directory, 'bundle'))
    const manifests = join(directory, 'manifests')
    for (const { name, section } of runs) {
      const changes = section.blocks.filter(({ language, notChecked }) => language === 'yaml' && notChecked === undefined).map(({ text }) => text)
      prepared.set(name, await prepareExample(name, join(root, section.run ?? ''), join(manifests, name), changes.join('---\n')))
    }
    operator = await startOperator({ directory: manifests })
  })
  afterAll(async () => {
    await operator?.stop()
    for (const { early } of prepared.values()) for (const upstream of early.values()) await upstream.close()
    await rm(directory, { recursive: true, force: true })
  })

  describe.each(runs)('the section $title', ({ name, section }) => {
    let running: RunningExample
    beforeAll(async () => {
      running = await startExample(prepared.get(name) as PreparedExample, operator, bundle)
    })
    afterAll(() => running?.stop())

    test(section.hasProblems ? 'has problems' : 'has no problem', () => {
      const problems = running.conditions().filter(({ message }) => !message.includes('has not been fetched yet'))
      const texts = problems.map(({ kind, name: object, message }) => `${kind} ${object}: ${message}`)
      expect(texts).toEqual(section.hasProblems ? expect.arrayContaining([expect.any(String)]) : [])
    })

    for (const { command, output = '', line } of section.blocks.filter(({ language }) => language === 'console').flatMap(readCommands)) {
      test(`prints the output of the command in line ${line}: ${command}`, async () => {
        // Objects of the section are in a namespace of their own.
        const text = command.replaceAll(`${section.run}/`, '{dir}/').replaceAll(/\bdefault\//g, `${name}/`)
        const printed = await running.runCommand({ title: '', command: `${PROXYCTL}\n{ ${text}\n} 2>&1 || true`, prints: /./ })
        const renamed = printed.replaceAll(`${name}/`, 'default/')
        if (!matchesOutput(output, renamed)) expect(renamed).toBe(output)
      })
    }

    for (const line of section.blocks.filter(({ language }) => language === 'log').flatMap(({ text }) => text.trimEnd().split('\n'))) {
      test(`logs the line ${line}`, async () => {
        // The test writes the objects of the section to another file.
        const pattern = linePattern(line.replaceAll('default/', `${name}/`).replace(/\S+\.yaml:\d+:\d+: /, ''))
        const problems = running.conditions().map((event) => describeEvent({ ...event, file: undefined }, '') ?? '')
        if (!problems.some((problem) => pattern.test(problem))) await running.dataplane.program.waitForLine(pattern, 20_000)
      })
    }
  })
})
