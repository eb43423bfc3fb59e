import { messageAreas, type MessageArea, type MessageEntry } from '../messages/index.ts'
import type { Files } from './output.ts'

const NOTE = '<!-- Written by `make generate`. Do not edit. -->'

/** docs/reference/messages: an index of all codes, and a page for each area with an anchor for each code. */
export function toMessagePages(): Files {
  const index = [
    NOTE,
    '# Messages',
    'Every problem that the programs report has a stable code such as `PX1012`: at the end of the message in statuses, in the output of `proxyctl` and in problems of config files and manifests, and in field `code` of log lines. `proxyctl explain PX1012` prints the entry of a code.',
    ...messageAreas.flatMap(({ page, title, messages }) => [
      `## ${title}`,
      [
        '| code | problem |',
        '|---|---|',
        ...Object.entries<MessageEntry>(messages).map(([code, entry]) => `| [${code}](${page}.md#${code.toLowerCase()}) | ${entry.title} |`),
      ].join('\n'),
    ]),
  ]
  return {
    'docs/reference/messages/README.md': `${index.join('\n\n')}\n`,
    ...Object.fromEntries(messageAreas.map((area) => [`docs/reference/messages/${area.page}.md`, toPage(area)])),
  }
}

function toPage({ title, messages }: MessageArea): string {
  const sections = Object.entries<MessageEntry>(messages).map(
    ([code, entry]) => `## ${code}\n\n**${entry.title.charAt(0).toUpperCase()}${entry.title.slice(1)}.**\n\n${entry.cause}\n\n**Fix:** ${entry.fix}`,
  )
  return `${NOTE}\n\n# ${title}\n\n${sections.join('\n\n')}\n`
}
