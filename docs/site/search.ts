/** A result of MiniSearch. */
interface Result {
  readonly id: string
  readonly queryTerms: readonly string[]
}

/**
 * The search of the site. The functions are sent to the browser as text, so they use nothing from outside of them: guides are ranked before the reference, and the specification,
 * decision records and performance notes are found only by someone who names them, as in "spec retries".
 */
export const search = {
  provider: 'local' as const,
  options: {
    miniSearch: {
      searchOptions: {
        fuzzy: 0.1,
        prefix: true,
        boost: { title: 6, text: 1, titles: 2 },
        boostDocument: (id: string, term: string): number => {
          if (/\/guide\//.test(id)) return 20
          return /\/(?:spec|adr)\//.test(id) && /^(?:spec|adr|decision)/.test(term) ? 400 : 1
        },
        filter: ({ id, queryTerms }: Result): boolean =>
          !/\/(?:spec|adr|performance|contributing)\//.test(id) ||
          queryTerms.some((term) => /^(?:spec|specification|adr|adrs|decision|decisions|record|records|performance|style)$/.test(term)),
      },
    },
  },
}
