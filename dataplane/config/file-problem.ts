/** Text of every file that was looked at, by absolute path; undefined: could not be read. */
export type FileTexts = ReadonlyMap<string, string | undefined>

/** A file that cannot be used. `problems` are `file:line: path: what`. */
export class ConfigFileError extends Error {
  readonly problems: readonly string[]
  readonly texts: FileTexts

  constructor(problems: readonly string[], texts: FileTexts) {
    super(problems.join('\n'))
    this.name = 'ConfigFileError'
    this.problems = problems
    this.texts = texts
  }
}

/** Gateway that the file's listeners belong to: what the environment says, else the file's `config`, else `default/config`. */
export interface ConfigFileOptions {
  readonly namespace?: string | undefined
  readonly gateway?: string | undefined
}
