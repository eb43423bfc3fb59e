import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { MessageKind } from '#api/config/definitions.ts'
import type { ProcessConfig } from '#gen/config/types.ts'
import { ConfigFileError, type ConfigFileOptions, type FileTexts } from './file-problem.ts'

/** A message as text: cheap to hand over, and to compare. */
export interface EncodedMessage {
  readonly kind: MessageKind
  readonly key: string
  readonly json: string
}

/** What a good file says. */
export interface EncodedFile {
  readonly process: ProcessConfig
  readonly messages: readonly EncodedMessage[]
  /** What is used and cannot work: `file:line: path: what`. */
  readonly warnings: readonly string[]
  readonly texts: FileTexts
}

/** First line of the reader's output: what holds for the whole file. A line `<kind> TAB <key as JSON> TAB <message as JSON>` per message follows. */
export interface FileHeader {
  readonly texts: readonly (readonly [string, string | null])[]
  readonly process?: ProcessConfig
  readonly warnings?: readonly string[]
  readonly problems?: readonly string[]
}

/** `file-reader.ts`, or what it was bundled to. */
const READER = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './file-reader.ts' : './file-reader.js', import.meta.url))

/**
 * Reads a `-f` file in a process of its own: parsing and checking some megabytes takes a second, in which traffic would stand
 * still, and the libraries for it take 30 MiB that only a process gives back.
 * @throws ConfigFileError naming each problem by file, line and path
 */
export async function readConfigFile(path: string, { namespace, gateway }: ConfigFileOptions = {}): Promise<EncodedFile> {
  const [head = '', ...lines] = (await runReader([path, JSON.stringify({ namespace, gateway })])).split('\n')
  const { texts, process: settings = {}, warnings = [], problems } = JSON.parse(head) as FileHeader
  const looked = new Map(texts.map(([name, text]) => [name, text ?? undefined]))
  if (problems !== undefined) throw new ConfigFileError(problems, looked)
  return { process: settings, texts: looked, warnings, messages: lines.filter((line) => line !== '').map(decodeLine) }
}

function decodeLine(line: string): EncodedMessage {
  const first = line.indexOf('\t')
  const second = line.indexOf('\t', first + 1)
  return { kind: line.slice(0, first) as MessageKind, key: JSON.parse(line.slice(first + 1, second)) as string, json: line.slice(second + 1) }
}

function runReader(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [READER, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const output: Buffer[] = []
    const errors: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(Buffer.concat(output).toString())
      else reject(new Error(`the process that reads the config file ended with code ${code}: ${Buffer.concat(errors).toString().trim()}`))
    })
  })
}
