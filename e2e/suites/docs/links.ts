import { posix } from 'node:path'
import { lineAt } from './tree.ts'

/** The files of the repository as links see them. */
export interface LinkTargets {
  /** Whether a path relative to the repository's root is a file or directory. */
  exists(path: string): boolean
  /** Text of a Markdown file. */
  read(path: string): string
}

/** Code, in which brackets are no links; blanks of the same length keep offsets. */
const CODE = /^(```|~~~)[\s\S]*?^\1|`[^`\n]*`/gm
const LINK = /\]\(<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)/gm

/** Returns `path:line: reason` for each relative link of a Markdown file whose file, directory or heading does not exist. */
export function findBrokenLinks(path: string, text: string, targets: LinkTargets): string[] {
  const broken: string[] = []
  for (const match of blankCode(text).matchAll(LINK)) {
    const link = match[1] ?? match[2] ?? ''
    if (/^[a-z][a-z0-9+.-]*:/i.test(link)) continue
    const [file = '', anchor] = link.split('#', 2)
    const target = file === '' ? path : posix.normalize(posix.join(posix.dirname(path), decodeURIComponent(file)))
    const at = `${path}:${lineAt(text, match.index)}`
    if (!targets.exists(target)) broken.push(`${at}: ${target} does not exist`)
    else if (anchor !== undefined && target.endsWith('.md') && !headingAnchors(targets.read(target)).has(anchor)) {
      broken.push(`${at}: ${target} has no heading #${anchor}`)
    }
  }
  return broken
}

/** The anchors that GitHub gives the headings of a Markdown file. */
export function headingAnchors(text: string): Set<string> {
  const anchors = new Set<string>()
  const withoutFences = text.replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, '')
  for (const [, heading = ''] of withoutFences.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = words.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    let anchor = slug
    for (let copy = 1; anchors.has(anchor); copy += 1) anchor = `${slug}-${copy}`
    anchors.add(anchor)
  }
  for (const [, id = ''] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id)
  return anchors
}

const blankCode = (text: string): string => text.replaceAll(CODE, (code) => code.replaceAll(/[^\n]/g, ' '))

/**
 * Returns `path:line: reason` for each file that a Markdown file names in backticks and that does not exist: `main.ts`, `forward/retry.ts`.
 * A name is good if some file of the repository has that name or ends with that path.
 */
export function findMissingFiles(path: string, text: string, files: readonly string[]): string[] {
  const missing: string[] = []
  for (const match of text.matchAll(/`([\w./-]+\.(?:ts|md))`/g)) {
    const name = (match[1] ?? '').replace(/^(?:\.\.?\/)+/, '')
    if (!files.some((file) => file === name || file.endsWith(`/${name}`))) missing.push(`${path}:${lineAt(text, match.index)}: there is no ${name}`)
  }
  return missing
}
