import { readFile, writeFile } from 'node:fs/promises'
import type { JsonObject } from '#api/json/index.ts'
import { digestTool, type ToolDigests } from '#api/mcp-pins/digest.ts'
import { findSuspicions, skeletonOf } from '#api/mcp-pins/findings.ts'
import { changedParts, parsePins, printPins, type Pins } from '#api/mcp-pins/pins.ts'
import { readTools, type McpServer } from './mcp/servers.ts'
import { alignColumns, CommandError, UsageError } from './output.ts'
import type { Command, Invocation } from './types.ts'

const DEFAULT_FILE = 'mcp-pins.json'
const MAX_DESCRIPTION = 400

/** How a tool differs from its pin. */
interface Difference {
  readonly target: string
  readonly tool: string
  readonly state: 'new' | 'changed' | 'gone' | 'approved'
  /** Parts that changed. */
  readonly changed?: readonly string[]
  readonly findings?: readonly string[]
  /** A pinned tool with a name that looks the same. */
  readonly looksLike?: string
  readonly description?: string
}

/** Compares the tools of servers with their pins. Returns 1 if they differ. */
export const runMcpDiff: Command = async (invocation) => {
  if (invocation.args.length > 0) throw new UsageError('mcp diff takes no argument; --server NAME=URL names a server')
  const { pins, tools } = await readAll(invocation)
  const differences = [...tools].flatMap(([target, list]) => compare(target, list, pins)).filter(({ state }) => state !== 'approved')
  invocation.output.print({ differences }, () => (differences.length === 0 ? ['all tools are approved'] : describe(differences)))
  return differences.length === 0 ? 0 : 1
}

/** Writes the pins of tools. */
export const runMcpApprove: Command = async (invocation) => {
  const { args, output } = invocation
  const { file, pins, tools } = await readAll(invocation)
  const named = new Set(args)
  const next = new Map([...pins].map(([target, list]) => [target, new Map(list)]))
  const approved: string[] = []
  const skipped: Difference[] = []
  for (const [target, list] of tools) {
    const known = next.get(target) ?? new Map<string, ToolDigests>()
    next.set(target, known)
    const definitions = new Map(list.map((tool) => [String(tool['name']), tool]))
    for (const difference of compare(target, list, pins)) {
      const id = `${target}/${difference.tool}`
      const isNamed = named.delete(id)
      const definition = definitions.get(difference.tool)
      if (difference.state === 'approved' || (args.length > 0 && !isNamed)) continue
      if (definition === undefined) known.delete(difference.tool)
      else if (isNamed || (difference.findings === undefined && difference.looksLike === undefined)) known.set(difference.tool, digestTool(definition))
      else {
        skipped.push(difference)
        continue
      }
      approved.push(id)
    }
  }
  const [missing] = named
  if (missing !== undefined) throw new CommandError('PX6008', `${missing} is no tool of the servers; name it as TARGET/TOOL`)
  await writeFile(file, printPins(next))
  output.print({ file, approved, skipped }, () => [
    `${file}: ${approved.length} changes written`,
    ...(skipped.length === 0 ? [] : ['not approved, because they look suspicious; name them to approve them:', ...describe(skipped)]),
  ])
  return skipped.length === 0 ? 0 : 1
}

interface ReadPins {
  readonly file: string
  readonly pins: Pins
  readonly tools: ReadonlyMap<string, readonly JsonObject[]>
}

async function readAll({ options, output }: Invocation): Promise<ReadPins> {
  const headers = Object.fromEntries((options.header ?? []).map(parseHeader))
  const servers = (options.server ?? []).map((text) => parseServer(text, headers))
  if (servers.length === 0) throw new UsageError('no server: name each with --server NAME=URL, where NAME is that of its target')
  const file = options.pins ?? DEFAULT_FILE
  const pins = await readPins(file)
  const tools = await output.wait(
    'reading the tools of the servers',
    Promise.all(servers.map(async (server) => [server.target, await readServer(server)] as const)),
  )
  return { file, pins, tools: new Map(tools) }
}

async function readServer(server: McpServer): Promise<readonly JsonObject[]> {
  try {
    return await readTools(server)
  } catch (error) {
    throw new CommandError('PX6019', (error as Error).message, { cause: error })
  }
}

/** A file that does not exist has no pins. */
async function readPins(file: string): Promise<Pins> {
  let text = ''
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new CommandError('PX6009', `${file}: ${(error as Error).message}`, { cause: error })
  }
  const pins = parsePins(text)
  if (typeof pins === 'string') throw new CommandError('PX6009', `${file} ${pins}`)
  return pins
}

function parseServer(text: string, headers: McpServer['headers']): McpServer {
  const at = text.indexOf('=')
  const [target, url] = [text.slice(0, at), text.slice(at + 1)]
  if (at <= 0 || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`--server: ${JSON.stringify(text)} is not NAME=URL, such as tickets=http://localhost:9001/mcp`)
  return { target, url, headers }
}

function parseHeader(text: string): [name: string, value: string] {
  const at = text.indexOf(':')
  if (at <= 0) throw new UsageError(`--header: ${JSON.stringify(text)} is not NAME: VALUE`)
  return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()]
}

/** The tools of a target, in the order of its list, and the pins of those that are gone. */
function compare(target: string, list: readonly JsonObject[], pins: Pins): Difference[] {
  const pinned = pins.get(target) ?? new Map<string, ToolDigests>()
  const names = new Set(list.map((tool) => String(tool['name'])))
  const present = list.map((tool): Difference => {
    const name = String(tool['name'])
    const pin = pinned.get(name)
    const changed = pin === undefined ? [] : changedParts(pin, digestTool(tool))
    if (pin !== undefined && changed.length === 0) return { target, tool: name, state: 'approved' }
    const findings = findSuspicions(tool)
    const looksLike = pin === undefined ? twinOf(name, pins) : undefined
    return {
      target,
      tool: name,
      state: pin === undefined ? 'new' : 'changed',
      ...(changed.length > 0 && { changed }),
      ...(findings.length > 0 && { findings }),
      ...(looksLike !== undefined && { looksLike }),
      description: typeof tool['description'] === 'string' ? tool['description'] : '',
    }
  })
  const gone = [...pinned.keys()].filter((name) => !names.has(name)).map((tool): Difference => ({ target, tool, state: 'gone' }))
  return [...present, ...gone]
}

function twinOf(name: string, pins: Pins): string | undefined {
  const skeleton = skeletonOf(name)
  for (const [target, tools] of pins) for (const other of tools.keys()) if (other !== name && skeletonOf(other) === skeleton) return `${target}/${other}`
  return undefined
}

function describe(differences: readonly Difference[]): string[] {
  const rows = differences.map(({ target, tool, state, changed, findings = [], looksLike }) => [
    visible(target),
    visible(tool),
    state,
    changed?.join(',') ?? '-',
    [...findings, ...(looksLike === undefined ? [] : [`LooksLike ${visible(looksLike)}`])].join(',') || '-',
  ])
  const descriptions = differences.flatMap(({ target, tool, description }) =>
    description === undefined ? [] : ['', `${visible(target)}/${visible(tool)}:`, `  ${visible(description.slice(0, MAX_DESCRIPTION))}`],
  )
  return [...alignColumns([['TARGET', 'TOOL', 'STATE', 'CHANGED', 'FINDINGS'], ...rows]), ...descriptions]
}

/** Characters that a terminal does not show, or acts on, as escapes. */
const visible = (text: string): string =>
  text.replaceAll(/[\p{C}\p{Variation_Selector}]/gu, (character) => (character === '\n' ? '\n  ' : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`))
