const readErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'no permission to read it',
  EISDIR: 'is a directory; name a file',
  ENOTDIR: 'part of the path is not a directory',
}

/** The cause for which a file was not read, in a few words. */
export function describeReadError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined) return message
  return readErrors[code] ?? `cannot be read: ${message}`
}
