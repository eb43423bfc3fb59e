import { lineAt } from '../docs/tree.ts'

/** A fenced block of a guide page. */
export interface Block {
  /** First word after the fence, such as `yaml`; empty if there is none. */
  readonly language: string
  readonly text: string
  /** Line of the opening fence, from 1. */
  readonly line: number
  /** Reason of `<!-- not checked: reason -->` in the line before the block. */
  readonly notChecked?: string
}

/** The part of a page from one heading to the next. */
export interface Section {
  /** Path of the page, relative to the root of the repository. */
  readonly page: string
  readonly heading: string
  readonly line: number
  readonly blocks: readonly Block[]
  /** Directory of `<!-- run: directory -->`: the example that the section is run with. */
  readonly run?: string
  /** `<!-- run: directory, with problems -->`: the operator reports problems about the objects of the section. */
  readonly hasProblems: boolean
}

/** A command of a `console` block. */
export interface ConsoleCommand {
  readonly command: string
  /** The expected output; undefined if the block has none. */
  readonly output: string | undefined
  readonly line: number
}

/** An output that is empty, as a `console` block writes it. */
const NO_OUTPUT = '(no output)'

const FENCE = /^(?:<!-- not checked: (?<reason>.+) -->\n)?(?<fence>(?:```+|~~~+))(?<info>[^\n]*)\n(?<text>[^]*?)^\k<fence>$/gm
const HEADING = /^#{1,6} +(.+?) *#*$/gm
const RUN = /^<!-- run: ([\w/-]+)(, with problems)? -->$/m

/** Splits a guide page into sections, in order. */
export function readSections(page: string, text: string): Section[] {
  const fences = [...text.matchAll(FENCE)]
  const withoutCode = text.replaceAll(FENCE, (code) => code.replaceAll(/[^\n]/g, ' '))
  const headings = [...withoutCode.matchAll(HEADING)]
  return headings.map((heading, index) => {
    const end = headings[index + 1]?.index ?? text.length
    const blocks = fences.filter((fence) => fence.index >= heading.index && fence.index < end).map((fence) => toBlock(text, fence))
    const [, run, problems] = RUN.exec(withoutCode.slice(heading.index, end)) ?? []
    return {
      page,
      heading: heading[1] ?? '',
      line: lineAt(text, heading.index),
      blocks,
      hasProblems: problems !== undefined,
      ...(run === undefined ? {} : { run }),
    }
  })
}

function toBlock(text: string, fence: RegExpExecArray): Block {
  const { reason, info = '', text: code = '' } = fence.groups ?? {}
  const line = lineAt(text, fence.index) + (reason === undefined ? 0 : 1)
  return { language: info.trim().split(/\s/)[0] ?? '', text: code, line, ...(reason === undefined ? {} : { notChecked: reason }) }
}

/**
 * Reads the commands of a `console` block: lines that begin with `$ `, each with the lines that follow as its output. A command continues after a backslash, and
 * to the end of a here-document.
 */
export function readCommands(block: Block): ConsoleCommand[] {
  const commands: { command: string; output: string[]; line: number }[] = []
  /** The last line of the here-document that is being read, or `\\` after a backslash. */
  let until: string | undefined
  for (const [index, text] of block.text.replace(/\n$/, '').split('\n').entries()) {
    const last = commands.at(-1)
    const line = block.line + 1 + index
    if (until !== undefined && last !== undefined) last.command += `\n${text}`
    else if (text.startsWith('$ ')) commands.push({ command: text.slice(2), output: [], line })
    else if (last === undefined) throw new Error(`line ${line}: a console block begins with "$ " and a command`)
    else {
      last.output.push(text)
      continue
    }
    if (until === undefined || until === '\\') until = text.endsWith('\\') ? '\\' : /<<'?(\w+)'?/.exec(text)?.[1]
    else if (text === until) until = undefined
  }
  return commands.map(({ output, ...rest }) => ({ ...rest, output: output.length === 0 ? undefined : output.join('\n') }))
}

/** Returns `page:line: reason` for each command of a section without output, and for each command that is not in a `console` block. */
export function findUnansweredCommands({ page, blocks }: Section): string[] {
  return blocks.flatMap((block, index) => {
    if (block.notChecked !== undefined) return []
    if (block.language === 'console' || (block.language === '' && block.text.startsWith('$ '))) {
      return readCommands(block)
        .filter(({ output }) => output === undefined)
        .map(({ command, line }) => `${page}:${line}: no output follows "${command}"; add it, or (no output)`)
    }
    const isCommand =
      ['', 'sh', 'bash', 'shell'].includes(block.language) && /^(?:curl|kubectl|helm|make|openssl|\.ci\/exec|proxyctl|npx|docker) /m.test(block.text)
    const next = blocks[index + 1]
    if (!isCommand || (next !== undefined && ['text', 'json', 'console'].includes(next.language))) return []
    return [`${page}:${block.line}: a command without its output; use a console block with "$ " before the command and its output after it`]
  })
}

/** Pattern for a line of a page, in which `...` stands for any text. */
export const linePattern = (line: string): RegExp => new RegExp(`^${toPattern(line)}$`)

const toPattern = (line: string): string =>
  line
    .trimEnd()
    .split('...')
    .map((text) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
    .join('[^\\n]*')

/** Compares the output of a command with the one of the page: `...` stands for any text of a line, a line `...` for any number of lines. */
export function matchesOutput(expected: string, actual: string): boolean {
  if (expected === NO_OUTPUT) return actual.trim() === ''
  const lines = expected.split('\n').map((line) => (line.trim() === '...' ? '(?:[^\\n]*\\n)*' : `${toPattern(line)}\\n`))
  const text = actual.replaceAll(/[ \t\r]+$/gm, '').trimEnd()
  return new RegExp(`^${lines.join('')}$`).test(`${text}\n`)
}
