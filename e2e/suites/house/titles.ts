import { parseSync, Visitor } from 'oxc-parser'
import { lineAt } from '../docs/tree.ts'

/** The title of a test as failure output shows it: those of the `describe` blocks around it, then its own. */
export interface Title {
  /** As written; placeholders (`%s`, `${…}`) are `%s`. */
  readonly text: string
  readonly line: number
}

const testFunctions = new Set(['test', 'it'])
const blockFunctions = new Set(['describe'])

/** Titles of the tests of one file that are written as literals. */
export function findTitles(path: string, source: string): readonly Title[] {
  const blocks: { readonly text: string; readonly start: number; readonly end: number }[] = []
  const tests: { readonly text: string; readonly start: number }[] = []
  new Visitor({
    CallExpression({ callee, arguments: [first], start, end }) {
      const text = first === undefined ? undefined : textOf(first)
      if (text === undefined) return
      if (isCallOf(callee, testFunctions)) tests.push({ text, start })
      else if (isCallOf(callee, blockFunctions)) blocks.push({ text, start, end })
    },
  }).visit(parseSync(path, source).program)
  return tests.map(({ text, start }) => {
    const around = blocks.filter((block) => block.start < start && start < block.end).toSorted((x, y) => x.start - y.start)
    return { text: [...around.map((block) => block.text), text].join(' '), line: lineAt(source, start) }
  })
}

interface Node {
  readonly type: string
}

/** `test`, `test.skip`, and what `test.each(rows)` returns. */
function isCallOf(callee: Node, names: ReadonlySet<string>): boolean {
  if ('name' in callee) return names.has(String(callee.name))
  if (callee.type === 'MemberExpression' && 'object' in callee && 'property' in callee) {
    const property = callee.property as { readonly name?: string }
    return isCallOf(callee.object as Node, names) && property.name !== 'each'
  }
  if (callee.type !== 'CallExpression' || !('callee' in callee)) return false
  const inner = callee.callee as Node
  return inner.type === 'MemberExpression' && 'object' in inner && isCallOf(inner.object as Node, names)
}

function textOf(node: Node): string | undefined {
  if (node.type === 'Literal' && 'value' in node && typeof node.value === 'string') return node.value.replaceAll(/%[a-zA-Z#]/g, '%s')
  if (node.type !== 'TemplateLiteral' || !('quasis' in node)) return undefined
  return (node.quasis as { readonly value: { readonly cooked: string | null } }[]).map(({ value }) => value.cooked ?? '').join('%s')
}

/** Words that begin a fragment, which cannot be understood without the line before it. */
const fragment = /^(to|of|and|but|or|so|than|what|whatever|who|whoever|whose|which|gets|is|are|has|does)\b/i

/** What is wrong with a title; undefined if it can be read as a sentence. */
export function checkTitle(text: string): string | undefined {
  const words = text.trim().split(/\s+/)
  // The rows of test.each complete the sentence.
  if (words.length < 3 && !text.includes('%s')) return 'has fewer than three words; write a sentence'
  if (fragment.test(text)) return `begins with "${words[0]}"; begin with the subject`
  return /[.;]$/.test(text) ? 'ends with punctuation' : undefined
}
