import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { MessageKind } from '#api/config/message-kinds.ts'
import type { ProcessConfig } from '#gen/config/types.ts'
import { Slice } from '../../runtime/cooperative.ts'
import { nodeCommand } from '../../runtime/node-command.ts'
import { ConfigFileError, type ConfigFileOptions, type FileDigests } from './problem.ts'
import type { ConfigMessage } from '../store.ts'

/** A message of a file, as the reader process printed it. */
export interface FileMessage {
  readonly kind: MessageKind
  readonly key: string
  /** Hash of its JSON text. */
  readonly digest: string
  /** Undefined if the digest equals the one held. */
  readonly message: ConfigMessage['message'] | undefined
}

/** Content of a valid file. */
export interface ReadFile {
  readonly process: ProcessConfig
  readonly messages: readonly FileMessage[]
  /** Values that are accepted but cannot work: `file:line:column: path: problem`. */
  readonly warnings: readonly string[]
  /** Ports that anyone can use, in the same form. */
  readonly notes: readonly string[]
  readonly digests: FileDigests
}

/** Digests of messages by `<kind> <key>`. */
export type HeldDigests = ReadonlyMap<string, string>

/**
 * First line of the reader's output, about the file itself. A line `<kind> TAB <key as JSON> TAB <digest> TAB <message as JSON>`
 * per message follows.
 */
export interface FileHeader {
  /** Path and digest; null: could not be read. */
  readonly files: readonly (readonly [string, string | undefined | null])[]
  readonly process?: ProcessConfig
  readonly warnings?: readonly string[]
  readonly notes?: readonly string[]
  readonly problems?: readonly string[]
}

/** `reader.ts`, or its bundle. */
const READER = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './reader.ts' : './file-reader.js', import.meta.url))

/**
 * Reads a `-f` file in a separate process: parsing and checking some megabytes takes a second, in which traffic would stop, and
 * the libraries need 30 MiB that are only released when a process ends. Decodes its output while it arrives.
 * @throws ConfigFileError naming each problem by file, line, column and path
 */
export async function readConfigFile(
  path: string,
  { namespace, gateway, placeholders }: ConfigFileOptions = {},
  held: HeldDigests = new Map(),
): Promise<ReadFile> {
  let header: FileHeader | undefined
  const messages: FileMessage[] = []
  await runReader([path, JSON.stringify({ namespace, gateway, placeholders })], (line) => {
    if (header === undefined) header = JSON.parse(line.toString()) as FileHeader
    else messages.push(decodeLine(line, held))
  })
  const { files, process: settings = {}, warnings = [], notes = [], problems } = header ?? { files: [], problems: [`${path}: nothing was read`] }
  const digests = new Map(files.map(([name, digest]) => [name, digest ?? undefined]))
  if (problems !== undefined) throw new ConfigFileError(problems, digests)
  return { process: settings, digests, warnings, notes, messages }
}

const TAB = 0x09
const LINE_FEED = 0x0a

function decodeLine(line: Buffer, held: HeldDigests): FileMessage {
  const first = line.indexOf(TAB)
  const second = line.indexOf(TAB, first + 1)
  const third = line.indexOf(TAB, second + 1)
  const kind = line.toString('latin1', 0, first) as MessageKind
  const key = JSON.parse(line.toString('utf8', first + 1, second)) as string
  const digest = line.toString('latin1', second + 1, third)
  const isHeld = held.get(`${kind} ${key}`) === digest
  return { kind, key, digest, message: isHeld ? undefined : (JSON.parse(line.toString('utf8', third + 1)) as ConfigMessage['message']) }
}

async function runReader(args: readonly string[], onLine: (line: Buffer) => void): Promise<void> {
  const [program, ...before] = nodeCommand()
  const child = spawn(program, [...before, READER, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  const [errors, code] = await Promise.all([text(child.stderr), ended, readLines(child.stdout, onLine)])
  if (code !== 0) throw new Error(`the process that reads the config file ended with code ${code}: ${errors.trim()}`)
}

/** Every line ends with a line feed; text after the last one is ignored. */
async function readLines(stream: Readable, onLine: (line: Buffer) => void): Promise<void> {
  let rest: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const slice = new Slice()
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const part = chunk.subarray(start, end)
      onLine(rest.length === 0 ? part : Buffer.concat([...rest, part]))
      rest = []
      start = end + 1
      if (slice.isOver) await slice.next()
    }
    if (start < chunk.length) rest.push(chunk.subarray(start))
    await slice.next()
  }
}
