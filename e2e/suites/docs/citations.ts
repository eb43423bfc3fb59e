import { lineAt } from './tree.ts'

const DOCUMENTS = ['traffic.md', 'llm.md', 'mcp.md', 'operator.md'] as const
type Document = (typeof DOCUMENTS)[number]

/** What can be cited of one document of docs/spec. */
interface Targets {
  /** `8.2`: headings with that number, and items of a numbered list (`4.7` = item 7 of section 4). */
  readonly sections: ReadonlySet<string>
  /** Numbers of the test cases. */
  readonly rows: ReadonlySet<number>
  /** Numbers of the decisions: 4 for D4. */
  readonly decisions: ReadonlySet<number>
}

export type Specification = Readonly<Record<Document, Targets>>

/** A bare `row 23` or `decision D4` belongs to the document of its directory; the first prefix of a path that matches decides. */
const DOCUMENT_OF: readonly (readonly [prefix: string, document: Document])[] = [
  ...DOCUMENTS.map((document) => [`docs/spec/${document}`, document] as const),
  ['dataplane/backend/mcp/', 'mcp.md'],
  ['dataplane/backend/agentruntime/', 'mcp.md'],
  ['operator/translate/reference/mcp-', 'mcp.md'],
  ['e2e/suites/mcp', 'mcp.md'],
  ['e2e/examples/mcp', 'mcp.md'],
  ['dataplane/backend/llm/', 'llm.md'],
  ['e2e/suites/llm/', 'llm.md'],
  ['operator/', 'operator.md'],
  ['charts/', 'operator.md'],
  ['', 'traffic.md'],
]

const NUMBERS = String.raw`\d+(?:(?:,\s+|\s+and\s+|,\s+and\s+|\s+to\s+|-)\d+)*`
const REFERENCE = String.raw`§\d+(?:\.\d+)*|D:?\d+|(?:rows?|cases?|items?|steps?)\s+${NUMBERS}`
const CITATION = new RegExp(String.raw`(?<![\w/-])(traffic|llm|mcp|operator)\.md\`?((?:[,;]?\s+(?:and\s+|to\s+|decision\s+)?(?:${REFERENCE})(?![\w]))+)`, 'g')
/** Sections of standards: `RFC 9112 §6.3`, `WHATWG HTML §9.2`. */
const STANDARD = /(?:RFC \d+|HTML|JSON-RPC 2\.0),? §\d+(?:\.\d+)*(?:(?:-|,? §|, and §| and §)\d+(?:\.\d+)*)*/g
const BARE = new RegExp(
  String.raw`§\d+(?:\.\d+)*|\b[Rr]ows?\s+${NUMBERS}|(?<=[(,]\s?)cases?\s+${NUMBERS}(?!:)|(?<=decision\s|[(,\[]\s?)D\d{1,2}(?=[\s).,:;\]])`,
  'g',
)
const PART = /\b[Pp]arts? (\d+)/g

/** Reads one document's headings, numbered lists, test cases and decisions. */
export function readTargets(text: string): Targets {
  const sections = new Set<string>()
  const rows = new Set<number>()
  const decisions = new Set<number>()
  let section = ''
  let inTestCases = false
  for (const line of text.split('\n')) {
    const heading = /^#{2,4} (?:(\d+(?:\.\d+)*)\.? )?(.*)/.exec(line)
    if (heading) {
      section = heading[1] ?? ''
      inTestCases = heading[2]?.startsWith('Test cases') === true
      if (section !== '') sections.add(section)
    }
    const item = /^(?:\| )?(\d+)(?:\. | \|)/.exec(line)?.[1]
    if (item !== undefined && inTestCases) rows.add(Number(item))
    else if (item !== undefined && section !== '') sections.add(`${section}.${item}`)
    for (const match of line.matchAll(/^\| D(\d+) \||\*\*D(\d+)\*\*|\[fix, D(\d+)\]/g)) decisions.add(Number(match[1] ?? match[2] ?? match[3]))
  }
  return { sections, rows, decisions }
}

export function readSpecification(read: (document: Document) => string): Specification {
  return Object.fromEntries(DOCUMENTS.map((document) => [document, readTargets(read(document))])) as Record<Document, Targets>
}

/** What was found in one file: how many citations, and `path:line: reason` of those without a target. */
export interface CitationReport {
  readonly count: number
  readonly broken: readonly string[]
}

/** Checks every citation of the specification in a file; `path` decides the document of bare numbers. */
export function checkCitations(specification: Specification, path: string, text: string): CitationReport {
  // A citation may be wrapped, in comments too. Blanks of the same length keep offsets.
  const flat = text.replaceAll(/\n[ \t]*(?:\*|\/\/|#|>)?[ \t]*/g, (found) => ' '.repeat(found.length))
  const own = DOCUMENT_OF.find(([prefix]) => path.startsWith(prefix))?.[1] ?? 'traffic.md'
  const isSpecification = path.startsWith('docs/spec/')
  const broken: string[] = []
  let count = 0
  const report = (offset: number, reason: string): void => void broken.push(`${path}:${lineAt(text, offset)}: ${reason}`)
  const taken: [number, number][] = []
  for (const match of flat.matchAll(CITATION)) {
    taken.push([match.index, match.index + match[0].length])
    const document = `${match[1]}.md` as Document
    let section = ''
    for (const [reference] of (match[2] ?? '').matchAll(new RegExp(REFERENCE, 'g'))) {
      count += 1
      if (reference.startsWith('§')) section = reference.slice(1)
      for (const missing of missingTargets(specification[document], reference, section)) report(match.index, `docs/spec/${document} has no ${missing}`)
    }
  }
  for (const match of flat.matchAll(STANDARD)) taken.push([match.index, match.index + match[0].length])
  for (const match of flat.matchAll(BARE)) {
    if (taken.some(([from, to]) => match.index >= from && match.index < to)) continue
    const reference = match[0].toLowerCase().replace(/^d(?=\d)/, 'D')
    count += 1
    if (reference.startsWith('§') && !isSpecification) report(match.index, `${reference} of which document? Write <document>.md ${reference}`)
    else for (const missing of missingTargets(specification[own], reference, '')) report(match.index, `docs/spec/${own} has no ${missing}`)
  }
  for (const match of flat.matchAll(PART)) if (!['1', '2', '3'].includes(match[1] ?? '')) report(match.index, `the requirements have no ${match[0]}`)
  return { count, broken }
}

/** Names of the targets of one reference that do not exist. */
function missingTargets(targets: Targets, reference: string, section: string): string[] {
  if (reference.startsWith('§')) return targets.sections.has(reference.slice(1)) ? [] : [reference]
  if (reference.startsWith('D')) return targets.decisions.has(Number(reference.slice(1))) ? [] : [`decision ${reference}`]
  const numbers = [...reference.matchAll(/\d+/g)].map(Number)
  if (/^(?:item|step)/.test(reference)) {
    return numbers.filter((number) => !targets.sections.has(`${section}.${number}`)).map((number) => `item ${number} in §${section}`)
  }
  return numbers.filter((number) => !targets.rows.has(number)).map((number) => `test case ${number}`)
}
