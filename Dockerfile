# An image with the CPU build of PyTorch:
#   docker build -t firstlight .
#   docker run --rm -v "$PWD/logs:/firstlight/logs" firstlight python src/train.py task=sentiment model=tiny
# Runs are written to the mounted folder. It must be writable for the user with the number 1000.
FROM python:3.12-slim
WORKDIR /firstlight

# A change of the source does not install PyTorch again.
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src/firstlight/version.py src/firstlight/
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
    -c constraints.txt -e '.[optuna,playground]'
COPY conf conf
COPY src src

RUN useradd --create-home --uid 1000 firstlight && install --directory --owner firstlight logs
USER firstlight
CMD ["python", "src/train.py", "--help"]
